// The C interface: the calls. What a C caller can get wrong is checked, and every exception is a status and a message.
#include <algorithm>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "capi/calls.h"
#include "capi/errors.h"
#include "capi/log.h"
#include "run/forecast.h"
#include "run/run.h"
#include "runtime/per_thread.h"

namespace fl {
namespace {

template <class Args>
void run_logged(const Args& args, CallOptions& options) {
  const CallLog log(args, options);
  run(args, options);
}

// checked(check, given..., options) has the arguments of the call.
template <class Checked, class... Given>
fl_status run_checked(const char* function, Checked checked, const fl_options* options, Given... given) {
  return guarded([&] {
    const Check check(function);
    Options parsed = parse(check, options);
    run_logged(checked(check, given..., parsed), parsed.call);
  });
}

// The same, of which nothing is computed.
template <class Checked, class... Given>
fl_status explain_checked(const char* function, Checked checked, fl_explanation* to, const fl_options* options,
                          Given... given) {
  return guarded([&] {
    const Check check(function, true);
    const Options parsed = parse(check, options);
    auto args = checked(check, given..., parsed);
    if constexpr (std::is_same_v<decltype(args), TransposeArgs>)
      args.in_place = args.in_place && (parsed.call.device_memory || transposes_in_place(args, parsed.call));
    struct Texts {
      std::string device, text;
    };
    Texts* const texts = per_thread<Texts>();  // what the caller gets is of this thread, until it asks again
    if (!texts) throw std::bad_alloc();
    const bool named = options && options->device && *options->device;
    const Explanation found = explanation(args, parsed.call, {.device = named ? options->device : "auto"});
    texts->device = found.taken.kernel ? device_text(found.taken.device) : "";
    texts->text = found.text;
    const fl_explanation values{sizeof values,         found.taken.kernel ? found.taken.kernel : "",
                                texts->device.c_str(), found.taken.us,
                                found.taken.steps,     found.taken.triangle,
                                texts->text.c_str()};
    write_struct(check, "explanation", "FL_EXPLANATION_INIT", to, sizeof values, values);
  });
}

void sgemm_grouped(const char* function, int64_t count, const fl_sgemm_problem* problems, const fl_options* options) {
  CallOptions call;
  std::vector<Product> products = checked_group(function, count, problems, options, call);
  const CallLog log(call);
  Group(std::move(products), call, Group::once).run(call.stream);
}

void ssyrk(const Check& check, fl_uplo uplo, int trans, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
           float beta, float* c, int64_t ldc, const fl_options* options) {
  if (uplo != FL_WHOLE && uplo != FL_LOWER && uplo != FL_UPPER)
    check.refuse("uplo must be FL_WHOLE, FL_LOWER or FL_UPPER, got " + std::to_string(int(uplo)));
  Options parsed = parse(check, options);
  const SgemmArgs args = checked_ssyrk(check, trans, n, k, alpha, a, lda, beta, c, ldc, parsed);
  if (uplo == FL_WHOLE) return run_logged(args, parsed.call);
  const CallLog log(args, parsed.call);
  run_triangle(args, uplo == FL_LOWER ? Triangle::lower : Triangle::upper, OtherTriangle::kept, parsed.call);
}

// The operand of a transpose in place, in memory of its own.
std::vector<float> copied(TransposeArgs& args) {
  const int64_t n = args.n, elements = args.m * n;
  std::vector<float> copy(std::size_t(args.batch) * std::size_t(elements));
  for (int64_t problem = 0; problem < args.batch; ++problem)
    for (int64_t i = 0; i < args.m; ++i)
      std::copy_n(args.a.data + problem * args.a.bs + i * args.a.rs, n, copy.data() + problem * elements + i * n);
  args.a = {copy.data(), n, 1, elements};
  return copy;
}

void transpose(const Check& check, int64_t m, int64_t n, const float* a, int64_t lda, int64_t stride_a, float* b,
               int64_t ldb, int64_t stride_b, int64_t batch, const fl_options* options) {
  Options parsed = parse(check, options);
  TransposeArgs args = checked_transpose(check, m, n, a, lda, stride_a, b, ldb, stride_b, batch, parsed);
  CallOptions& call = parsed.call;
  const bool same = args.in_place;
  args.in_place = same && (call.device_memory || transposes_in_place(args, call));
  std::vector<float> copy;
  if (same && !args.in_place) copy = copied(args);
  run_logged(args, call);
}

}  // namespace
}  // namespace fl

// ---------------------------------------------------------------- the exported functions
using fl::Check;
using fl::guarded;

fl_status fl_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                   const float* b, int64_t ldb, float beta, float* c, int64_t ldc, const fl_options* options) {
  return fl::run_checked("fl_sgemm", fl::checked_sgemm, options, trans_a, trans_b, m, n, k, alpha, a, lda, 0, b, ldb, 0,
                         beta, c, ldc, 0, 1);
}

fl_status fl_sgemm_batched_strided(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                                   const float* a, int64_t lda, int64_t stride_a, const float* b, int64_t ldb,
                                   int64_t stride_b, float beta, float* c, int64_t ldc, int64_t stride_c, int64_t batch,
                                   const fl_options* options) {
  return fl::run_checked("fl_sgemm_batched_strided", fl::checked_sgemm, options, trans_a, trans_b, m, n, k, alpha, a,
                         lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch);
}

fl_status fl_sgemm_grouped(int64_t count, const fl_sgemm_problem* problems, const fl_options* options) {
  return guarded([&] { fl::sgemm_grouped("fl_sgemm_grouped", count, problems, options); });
}

fl_status fl_ssyrk(fl_uplo uplo, int trans, int64_t n, int64_t k, float alpha, const float* a, int64_t lda, float beta,
                   float* c, int64_t ldc, const fl_options* options) {
  return guarded([&] { fl::ssyrk(Check("fl_ssyrk"), uplo, trans, n, k, alpha, a, lda, beta, c, ldc, options); });
}

fl_status fl_sgemv(int trans, int64_t m, int64_t n, float alpha, const float* a, int64_t lda, const float* x,
                   int64_t incx, float beta, float* y, int64_t incy, const fl_options* options) {
  return fl::run_checked("fl_sgemv", fl::checked_sgemv, options, trans, m, n, alpha, a, lda, 0, x, incx, 0, beta, y,
                         incy, 0, 1);
}

fl_status fl_sgemv_batched_strided(int trans, int64_t m, int64_t n, float alpha, const float* a, int64_t lda,
                                   int64_t stride_a, const float* x, int64_t incx, int64_t stride_x, float beta,
                                   float* y, int64_t incy, int64_t stride_y, int64_t batch, const fl_options* options) {
  return fl::run_checked("fl_sgemv_batched_strided", fl::checked_sgemv, options, trans, m, n, alpha, a, lda, stride_a,
                         x, incx, stride_x, beta, y, incy, stride_y, batch);
}

fl_status fl_transpose(int64_t m, int64_t n, const float* a, int64_t lda, float* b, int64_t ldb,
                       const fl_options* options) {
  return guarded([&] { fl::transpose(Check("fl_transpose"), m, n, a, lda, 0, b, ldb, 0, 1, options); });
}

fl_status fl_transpose_batched_strided(int64_t m, int64_t n, const float* a, int64_t lda, int64_t stride_a, float* b,
                                       int64_t ldb, int64_t stride_b, int64_t batch, const fl_options* options) {
  return guarded([&] {
    fl::transpose(Check("fl_transpose_batched_strided"), m, n, a, lda, stride_a, b, ldb, stride_b, batch, options);
  });
}

// ---------------------------------------------------------------- which kernel a call takes and why
fl_status fl_explain_sgemm(fl_explanation* explanation, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                           float alpha, const float* a, int64_t lda, int64_t stride_a, const float* b, int64_t ldb,
                           int64_t stride_b, float beta, const float* c, int64_t ldc, int64_t stride_c, int64_t batch,
                           const fl_options* options) {
  return fl::explain_checked("fl_explain_sgemm", fl::checked_sgemm, explanation, options, trans_a, trans_b, m, n, k,
                             alpha, a, lda, stride_a, b, ldb, stride_b, beta, const_cast<float*>(c), ldc, stride_c,
                             batch);
}

fl_status fl_explain_sgemv(fl_explanation* explanation, int trans, int64_t m, int64_t n, float alpha, const float* a,
                           int64_t lda, int64_t stride_a, const float* x, int64_t incx, int64_t stride_x, float beta,
                           const float* y, int64_t incy, int64_t stride_y, int64_t batch, const fl_options* options) {
  return fl::explain_checked("fl_explain_sgemv", fl::checked_sgemv, explanation, options, trans, m, n, alpha, a, lda,
                             stride_a, x, incx, stride_x, beta, const_cast<float*>(y), incy, stride_y, batch);
}

fl_status fl_explain_transpose(fl_explanation* explanation, int64_t m, int64_t n, const float* a, int64_t lda,
                               int64_t stride_a, const float* b, int64_t ldb, int64_t stride_b, int64_t batch,
                               const fl_options* options) {
  return fl::explain_checked("fl_explain_transpose", fl::checked_transpose, explanation, options, m, n, a, lda,
                             stride_a, const_cast<float*>(b), ldb, stride_b, batch);
}
