// Any arguments of the C interface. An operand has exactly the memory that its sizes ask for, or is NULL if that is
// too much or cannot be: so every access beside it is seen, and what is wrong has to be refused.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "fastlinalg/fastlinalg.h"

namespace {

constexpr int64_t most_floats = 1 << 16;
using Data = FuzzedDataProvider;

int64_t size(Data& data) {
  const int64_t odd[] = {
      -1, 1ll << 31, 1ll << 32, 1ll << 61, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  return data.ConsumeIntegralInRange<int>(0, 15) ? data.ConsumeIntegralInRange<int64_t>(0, 40)
                                                 : data.PickValueInArray(odd);
}
int64_t stride(Data& data, int64_t least) {
  return data.ConsumeIntegralInRange<int>(0, 15)
             ? std::clamp<int64_t>(least, 1, int64_t(1) << 62) + data.ConsumeIntegralInRange(0, 5)
             : size(data);
}
float scalar(Data& data) {
  return data.ConsumeBool() ? data.PickValueInArray({0.0f, 1.0f, -0.5f}) : data.ConsumeFloatingPoint<float>();
}

struct Operand {
  std::vector<float> values;
  bool there = false;

  // `rows` lines of `cols` elements, in a batch.
  Operand(Data& data, int64_t rows, int64_t cols, int64_t ld, int64_t batch = 1, int64_t step = 0) {
    if (rows <= 0 || cols <= 0 || batch <= 0 || ld < 0 || step < 0) return;
    const __int128 last = __int128(rows - 1) * ld + __int128(batch - 1) * step;
    if (rows > most_floats || cols > most_floats || last > most_floats) return;
    values.assign(size_t(last + cols), data.ConsumeBool() ? 1.0f : std::numeric_limits<float>::quiet_NaN());
    values.shrink_to_fit();
    there = true;
  }
  float* pointer() { return there ? values.data() : nullptr; }
};

// Names that are there and others; the size of the struct may be any.
struct Options {
  std::string kernel, device;
  fl_options given;

  explicit Options(Data& data) : kernel(data.ConsumeRandomLengthString(20)), device(data.ConsumeRandomLengthString(8)) {
    if (data.ConsumeBool()) {
      fl_kernel_info info FL_KERNEL_INFO_INIT;
      const auto op = data.PickValueInArray({FL_SGEMM, FL_SGEMV, FL_TRANSPOSE});
      if (fl_kernel_at(op, data.ConsumeIntegralInRange(-1, fl_kernel_count(op)), &info) == FL_OK) kernel = info.name;
    }
    given = {sizeof(fl_options), nullptr, fl_precision(data.ConsumeIntegralInRange(0, 3)), nullptr, nullptr, 0};
    if (data.ConsumeBool()) given.kernel = kernel.c_str();
    if (data.ConsumeBool()) given.device = data.ConsumeBool() ? "cpu" : device.c_str();
    if (!data.ConsumeIntegralInRange(0, 20)) given.struct_size = data.ConsumeIntegralInRange<size_t>(0, 8);
    if (!data.ConsumeIntegralInRange(0, 20)) given.device_memory = data.ConsumeIntegralInRange(-1, 2);
  }
};

void expect(bool right) {
  if (!right) std::abort();
}
// Refused calls leave the result alone.
template <class Call>
void check(Operand& result, const Call& call) {
  const std::vector<float> before = result.values;
  const fl_status status = call();
  expect(status == FL_OK || status == FL_INVALID_VALUE || status == FL_OUT_OF_MEMORY || status == FL_CUDA_ERROR);
  expect(status == FL_OK || *fl_last_error());
  const size_t bytes = before.size() * sizeof(float);
  expect(status != FL_INVALID_VALUE || !bytes || std::memcmp(before.data(), result.values.data(), bytes) == 0);
}

void products(Data& data, const fl_options* options) {
  const int ta = data.ConsumeIntegralInRange(-1, 2), tb = data.ConsumeIntegralInRange(-1, 2);
  const int64_t m = size(data), n = size(data), k = size(data), batch = data.ConsumeBool() ? 1 : size(data);
  const float alpha = scalar(data), beta = scalar(data);
  const int64_t lda = stride(data, ta == 1 ? m : k), ldb = stride(data, tb == 1 ? k : n), ldc = stride(data, n);
  const int64_t stride_a = size(data), stride_b = size(data), stride_c = size(data);
  Operand a = ta == 1 ? Operand(data, k, m, lda, batch, stride_a) : Operand(data, m, k, lda, batch, stride_a);
  Operand b = tb == 1 ? Operand(data, n, k, ldb, batch, stride_b) : Operand(data, k, n, ldb, batch, stride_b);
  Operand c(data, m, n, ldc, batch, stride_c);
  if (data.ConsumeBool()) {
    check(c, [&] {
      return fl_sgemm_batched_strided(ta, tb, m, n, k, alpha, a.pointer(), lda, stride_a, b.pointer(), ldb, stride_b,
                                      beta, c.pointer(), ldc, stride_c, batch, options);
    });
    return;
  }
  fl_plan* plan = nullptr;
  const auto constant = fl_operand(data.ConsumeIntegralInRange(0, 3));
  check(c, [&] {
    return fl_plan_sgemm(&plan, ta, tb, m, n, k, alpha, a.pointer(), lda, stride_a, b.pointer(), ldb, stride_b, beta,
                         c.pointer(), ldc, stride_c, batch, constant, options);
  });
  for (int times = plan ? 2 : 0; times; --times) check(c, [&] { return fl_plan_execute(plan, nullptr); });
  fl_plan_free(plan);
}

void triangles(Data& data, const fl_options* options) {
  const int trans = data.ConsumeIntegralInRange(-1, 2);
  const auto uplo = fl_uplo(data.ConsumeIntegralInRange(0, 3));
  const int64_t n = size(data), k = size(data), lda = stride(data, trans == 1 ? n : k), ldc = stride(data, n);
  const float alpha = scalar(data), beta = scalar(data);
  Operand a = trans == 1 ? Operand(data, k, n, lda) : Operand(data, n, k, lda), c(data, n, n, ldc);
  check(c, [&] { return fl_ssyrk(uplo, trans, n, k, alpha, a.pointer(), lda, beta, c.pointer(), ldc, options); });
}

void vectors(Data& data, const fl_options* options) {
  const int trans = data.ConsumeIntegralInRange(-1, 2);
  const int64_t m = size(data), n = size(data), batch = data.ConsumeBool() ? 1 : size(data), lda = stride(data, n);
  const int64_t sign_x = data.ConsumeBool() ? 1 : -1, sign_y = data.ConsumeBool() ? 1 : -1;
  const int64_t incx = stride(data, 1), incy = stride(data, 1);
  const int64_t stride_a = size(data), stride_x = size(data), stride_y = size(data);
  const float alpha = scalar(data), beta = scalar(data);
  Operand a(data, m, n, lda, batch, stride_a), x(data, trans == 1 ? m : n, 1, incx, batch, stride_x);
  Operand y(data, trans == 1 ? n : m, 1, incy, batch, stride_y);
  const int64_t least = std::numeric_limits<int64_t>::min();
  check(y, [&] {
    return fl_sgemv_batched_strided(trans, m, n, alpha, a.pointer(), lda, stride_a, x.pointer(),
                                    incx == least ? incx : sign_x * incx, stride_x, beta, y.pointer(),
                                    incy == least ? incy : sign_y * incy, stride_y, batch, options);
  });
}

void transposes(Data& data, const fl_options* options) {
  const int64_t m = size(data), n = size(data), batch = data.ConsumeBool() ? 1 : size(data);
  const int64_t lda = stride(data, n), ldb = stride(data, m), stride_a = size(data), stride_b = size(data);
  Operand a(data, m, n, lda, batch, stride_a), b(data, n, m, ldb, batch, stride_b);
  check(b, [&] {
    return fl_transpose_batched_strided(m, n, a.pointer(), lda, stride_a, b.pointer(), ldb, stride_b, batch, options);
  });
  Operand& square = a;
  if (m == n)
    check(square, [&] {
      return fl_transpose_batched_strided(m, n, a.pointer(), lda, stride_a, a.pointer(), lda, stride_a, batch, options);
    });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  Data data(bytes, count);
  const Options options(data);
  const fl_options* const given = data.ConsumeBool() ? &options.given : nullptr;
  fl_set_num_threads(data.ConsumeIntegralInRange(1, 3));
  void (*const calls[])(Data&, const fl_options*) = {products, products, triangles, vectors, transposes};
  data.PickValueInArray(calls)(data, given);
  return 0;
}
