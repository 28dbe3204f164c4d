#include "capi/calls.h"

#include <optional>
#include <string>

#include "capi/check.h"

namespace fl {
namespace {

// The operand that a stored row-major matrix is, with or without transpose.
ConstMatrix operand(const float* data, int64_t ld, bool transposed, int64_t stride = 0) {
  return transposed ? ConstMatrix{data, 1, ld, stride} : ConstMatrix{data, ld, 1, stride};
}

std::optional<Precision> precision_of(fl_precision given) {
  switch (given) {
    case FL_ACCURATE: return Precision::accurate;
    case FL_STRICT: return Precision::strict;
    case FL_REPRODUCIBLE: return Precision::reproducible;
  }
  return std::nullopt;
}

// In an array of a newer or an older version of the struct.
fl_sgemm_problem problem_at(const Check& check, const fl_sgemm_problem* problems, int64_t i) {
  const std::size_t size = problems->struct_size;
  const auto& given =
      *reinterpret_cast<const fl_sgemm_problem*>(reinterpret_cast<const char*>(problems) + std::size_t(i) * size);
  constexpr const char* init = "FL_SGEMM_PROBLEM_INIT";
  if (given.struct_size != size)
    check.refuse("struct_size is " + std::to_string(given.struct_size) + " and that of problems[0] " +
                 std::to_string(size) + "; start from " + init);
  fl_sgemm_problem initial = FL_SGEMM_PROBLEM_INIT;
  return read_struct(check, "problems", init, given, sizeof initial, initial);
}

Element element_of(const Check& check, const char* name, fl_dtype given) {
  switch (given) {
    case FL_FLOAT32: return Element::float32;
    case FL_FLOAT16: return Element::float16;
    case FL_BFLOAT16: return Element::bfloat16;
  }
  check.refuse(std::string(name) + " must be FL_FLOAT32, FL_FLOAT16 or FL_BFLOAT16, got " + std::to_string(int(given)));
}

}  // namespace

Options parse(const Check& check, const fl_options* given) {
  fl_options options = FL_OPTIONS_INIT;
  if (given) options = read_struct(check, "options", "FL_OPTIONS_INIT", *given, sizeof options, options);
  const std::optional<Precision> precision = precision_of(options.precision);
  if (!precision)
    check.refuse("precision must be FL_ACCURATE, FL_STRICT or FL_REPRODUCIBLE, got " +
                 std::to_string(int(options.precision)));
  if (options.kernel && !*options.kernel) check.refuse("kernel must be a name or NULL, got \"\"");
  check.flag("device_memory", options.device_memory);

  Options parsed;
  parsed.precision = *precision;
  parsed.a = element_of(check, "a_type", options.a_type);
  parsed.b = element_of(check, "b_type", options.b_type);
  CallOptions& call = parsed.call;
  if (options.kernel) call.kernel = options.kernel;
  if (options.device) call.device = parse_device(options.device);
  call.stream = options.stream;
  call.device_memory = options.device_memory;
  if (call.device_memory) {
    if (call.device.kind == Device::cpu) check.refuse("device_memory needs a CUDA device, but device is \"cpu\"");
    if (call.device.kind == Device::automatic) call.device = {Device::cuda, 0};
    // The caller has to be able to wait for the result, so not on a stream of ours. 1 is cudaStreamLegacy.
    if (!call.stream) call.stream = reinterpret_cast<void*>(1);
  }
  return parsed;
}

SgemmArgs checked_sgemm(const Check& check, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                        const float* a, int64_t lda, int64_t stride_a, const float* b, int64_t ldb, int64_t stride_b,
                        float beta, float* c, int64_t ldc, int64_t stride_c, int64_t batch, const Options& options) {
  check.flag("trans_a", trans_a);
  check.flag("trans_b", trans_b);
  check.sizes({{"m", m}, {"n", n}, {"k", k}, {"batch", batch}});
  check.matrix("a", a, trans_a ? k : m, trans_a ? m : k, lda, batch, stride_a, options.a);
  check.matrix("b", b, trans_b ? n : k, trans_b ? k : n, ldb, batch, stride_b, options.b);
  check.matrix("c", c, m, n, ldc, batch, stride_c);
  check.separate_results("c", m, n, ldc, batch, stride_c);
  SgemmArgs p{};
  p.m = m, p.n = n, p.k = k, p.batch = batch, p.alpha = alpha, p.beta = beta, p.precision = options.precision;
  p.a = operand(a, lda, trans_a, stride_a), p.b = operand(b, ldb, trans_b, stride_b), p.c = {c, ldc, 1, stride_c};
  p.stored = {stored_at(options.a, a), stored_at(options.b, b)};
  return p;
}

std::vector<Product> checked_group(const char* function, int64_t count, const fl_sgemm_problem* problems,
                                   const fl_options* options, CallOptions& call) {
  const Check list(function);
  list.sizes({{"count", count}});
  if (count > 0 && !problems) list.refuse("problems is NULL");
  const Options parsed = parse(list, options);
  call = parsed.call;
  std::vector<Product> products;
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = std::string(function) + ", problems[" + std::to_string(i) + "]";
    const Check check(name.c_str());
    const fl_sgemm_problem p = problem_at(check, problems, i);
    products.push_back(checked_sgemm(check, p.trans_a, p.trans_b, p.m, p.n, p.k, p.alpha, p.a, p.lda, 0, p.b, p.ldb, 0,
                                     p.beta, p.c, p.ldc, 0, 1, parsed));
  }
  return products;
}

SgemmArgs checked_ssyrk(const Check& check, int trans, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                        float beta, float* c, int64_t ldc, const Options& options) {
  check.flag("trans", trans);
  check.sizes({{"n", n}, {"k", k}});
  check.matrix("a", a, trans ? k : n, trans ? n : k, lda, 1, 0, options.a);
  check.matrix("c", c, n, n, ldc);
  SgemmArgs p{};
  p.m = p.n = n, p.k = k, p.alpha = alpha, p.beta = beta, p.precision = options.precision;
  p.a = operand(a, lda, trans), p.b = operand(a, lda, !trans), p.c = {c, ldc, 1};
  p.stored = {stored_at(options.a, a), stored_at(options.a, a)};
  return p;
}

SgemvArgs checked_sgemv(const Check& check, int trans, int64_t m, int64_t n, float alpha, const float* a, int64_t lda,
                        int64_t stride_a, const float* x, int64_t incx, int64_t stride_x, float beta, float* y,
                        int64_t incy, int64_t stride_y, int64_t batch, const Options& options) {
  check.flag("trans", trans);
  check.sizes({{"m", m}, {"n", n}, {"batch", batch}});
  const int64_t size_x = trans ? m : n, size_y = trans ? n : m;
  check.matrix("a", a, m, n, lda, batch, stride_a, options.a);
  check.vector("x", x, size_x, incx, batch, stride_x, options.b);
  check.vector("y", y, size_y, incy, batch, stride_y);
  check.separate_vectors("y", size_y, incy, batch, stride_y);
  SgemvArgs p{};
  p.m = size_y, p.n = size_x, p.batch = batch, p.alpha = alpha, p.beta = beta;
  p.a = operand(a, lda, trans, stride_a);
  p.x = {first_element(x, size_x, incx), incx, stride_x}, p.y = {first_element(y, size_y, incy), incy, stride_y};
  p.stored = {stored_at(options.a, a), stored_at(options.b, x)};
  return p;
}

TransposeArgs checked_transpose(const Check& check, int64_t m, int64_t n, const float* a, int64_t lda, int64_t stride_a,
                                float* b, int64_t ldb, int64_t stride_b, int64_t batch, const Options& options) {
  if (options.a != Element::float32 || options.b != Element::float32)
    check.refuse("a_type and b_type must be FL_FLOAT32 for a transpose");
  check.sizes({{"m", m}, {"n", n}, {"batch", batch}});
  check.matrix("a", a, m, n, lda, batch, stride_a);
  check.matrix("b", b, n, m, ldb, batch, stride_b);
  check.separate_results("b", n, m, ldb, batch, stride_b);
  const bool empty = m == 0 || n == 0 || batch == 0;
  const bool in_place = a && a == b && !empty;
  if (in_place && (m != n || lda != ldb || (batch > 1 && stride_a != stride_b)))
    check.refuse(
        "a and b are the same memory, so the matrix must be square and lda equal ldb, got " + std::to_string(m) +
        " x " + std::to_string(n) + ", lda " + std::to_string(lda) + ", ldb " + std::to_string(ldb) +
        (batch > 1 ? ", and stride_a " + std::to_string(stride_a) + " equal stride_b, got " + std::to_string(stride_b)
                   : ""));
  return {.m = m, .n = n, .batch = batch, .a = {a, lda, 1, stride_a}, .b = {b, ldb, 1, stride_b}, .in_place = in_place};
}

}  // namespace fl
