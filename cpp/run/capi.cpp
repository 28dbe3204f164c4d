// The C interface: the calls. What a C caller can get wrong is checked, and every exception is a status and a message.
#include <algorithm>
#include <string>
#include <vector>

#include "run/capi_calls.h"
#include "run/capi_errors.h"
#include "run/capi_log.h"

namespace fl {
namespace {

template <class Args>
void run_logged(const Args& args, CallOptions& options) {
  const CallLog log(args, options);
  run(args, options);
}

void sgemm(const Check& check, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
           int64_t lda, int64_t stride_a, const float* b, int64_t ldb, int64_t stride_b, float beta, float* c,
           int64_t ldc, int64_t stride_c, int64_t batch, const fl_options* options) {
  SgemmArgs args = checked_sgemm(check, trans_a, trans_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c,
                                 ldc, stride_c, batch);
  Options parsed = parse(check, options);
  args.precision = parsed.precision;
  run_logged(args, parsed.call);
}

void sgemv(const Check& check, int trans, int64_t m, int64_t n, float alpha, const float* a, int64_t lda,
           const float* x, int64_t incx, float beta, float* y, int64_t incy, const fl_options* options) {
  const SgemvArgs args = checked_sgemv(check, trans, m, n, alpha, a, lda, x, incx, beta, y, incy);
  CallOptions call = parse(check, options).call;
  run_logged(args, call);
}

void transpose(const Check& check, int64_t m, int64_t n, const float* a, int64_t lda, float* b, int64_t ldb,
               const fl_options* options) {
  check.size("m", m);
  check.size("n", n);
  check.matrix("a", a, m, n, lda);
  check.matrix("b", b, n, m, ldb);
  CallOptions call = parse(check, options).call;
  TransposeArgs args{.m = m, .n = n, .a = {a, lda, 1}, .b = {b, ldb, 1}};
  std::vector<float> copy;
  if (a == b && m > 0 && n > 0) {
    if (m != n || lda != ldb)
      check.refuse("a and b are the same memory, so the matrix must be square and lda equal ldb, got " +
                   std::to_string(m) + " x " + std::to_string(n) + ", lda " + std::to_string(lda) + ", ldb " +
                   std::to_string(ldb));
    args.in_place = call.device_memory || transposes_in_place(args, call);
    if (!args.in_place) {
      copy.resize(std::size_t(m) * std::size_t(n));
      for (int64_t i = 0; i < m; ++i) std::copy_n(a + i * lda, n, copy.data() + i * n);
      args.a = {copy.data(), n, 1};
    }
  }
  run_logged(args, call);
}

}  // namespace
}  // namespace fl

// ---------------------------------------------------------------- the exported functions
using fl::Check;
using fl::guarded;

fl_status fl_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                   const float* b, int64_t ldb, float beta, float* c, int64_t ldc, const fl_options* options) {
  return guarded([&] {
    fl::sgemm(Check("fl_sgemm"), trans_a, trans_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1, options);
  });
}

fl_status fl_sgemm_batched_strided(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                                   const float* a, int64_t lda, int64_t stride_a, const float* b, int64_t ldb,
                                   int64_t stride_b, float beta, float* c, int64_t ldc, int64_t stride_c, int64_t batch,
                                   const fl_options* options) {
  return guarded([&] {
    fl::sgemm(Check("fl_sgemm_batched_strided"), trans_a, trans_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b,
              beta, c, ldc, stride_c, batch, options);
  });
}

fl_status fl_sgemv(int trans, int64_t m, int64_t n, float alpha, const float* a, int64_t lda, const float* x,
                   int64_t incx, float beta, float* y, int64_t incy, const fl_options* options) {
  return guarded([&] { fl::sgemv(Check("fl_sgemv"), trans, m, n, alpha, a, lda, x, incx, beta, y, incy, options); });
}

fl_status fl_transpose(int64_t m, int64_t n, const float* a, int64_t lda, float* b, int64_t ldb,
                       const fl_options* options) {
  return guarded([&] { fl::transpose(Check("fl_transpose"), m, n, a, lda, b, ldb, options); });
}
