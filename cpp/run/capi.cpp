// The C interface: checks what a C caller can get wrong, and turns every exception into a status and a message.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/operations.h"
#include "device/device.h"
#include "device/hardware.h"
#include "dispatch/tuning_file.h"
#include "fastlinalg/fastlinalg.h"
#include "run/capi_check.h"
#include "run/run.h"
#include "runtime/fork.h"
#include "runtime/threading.h"

namespace fl {
namespace {

// ---------------------------------------------------------------- errors
// A fixed buffer: reporting that memory has run out must not need memory.
thread_local char last_error[2048] = "";
thread_local int last_cuda_error = 0;

fl_status fail(fl_status status, const char* message, int cuda_error = 0) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s", message);
  last_cuda_error = cuda_error;
  return status;
}

template <class Body>
fl_status guarded(Body&& body) noexcept {
  try {
    body();
    return FL_OK;
  } catch (const CudaError& error) {
    return fail(FL_CUDA_ERROR, error.what(), error.code);
  } catch (const OutOfMemory& error) {
    return fail(FL_OUT_OF_MEMORY, error.what());
  } catch (const std::bad_alloc&) {
    return fail(FL_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::invalid_argument& error) {
    return fail(FL_INVALID_VALUE, error.what());
  } catch (const std::exception& error) {
    return fail(FL_INTERNAL_ERROR, error.what());
  } catch (...) {
    return fail(FL_INTERNAL_ERROR, "an exception of unknown type");
  }
}

// ---------------------------------------------------------------- options
struct Options {
  CallOptions call;
  Precision precision = Precision::accurate;
};

Options parse(const Check& check, const fl_options* given) {
  fl_options options = FL_OPTIONS_INIT;
  if (given) {
    if (given->struct_size != sizeof options)
      check.refuse("options->struct_size is " + std::to_string(given->struct_size) + ", this library knows " +
                   std::to_string(sizeof options) + "; start from FL_OPTIONS_INIT");
    options = *given;
  }
  if (options.precision != FL_ACCURATE && options.precision != FL_STRICT)
    check.refuse("precision must be FL_ACCURATE or FL_STRICT, got " + std::to_string(int(options.precision)));
  if (options.kernel && !*options.kernel) check.refuse("kernel must be a name or NULL, got \"\"");
  check.flag("device_memory", options.device_memory);

  Options parsed;
  parsed.precision = options.precision == FL_STRICT ? Precision::strict : Precision::accurate;
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

// The operand that a stored row-major matrix is, with or without transpose.
ConstMatrix operand(const float* data, int64_t ld, bool transposed, int64_t stride = 0) {
  return transposed ? ConstMatrix{data, 1, ld, stride} : ConstMatrix{data, ld, 1, stride};
}

// Element 0 of a vector that is walked from its end lies behind all others.
template <class T>
T* first_element(T* data, int64_t size, int64_t inc) {
  return inc < 0 && size > 0 ? data - (size - 1) * inc : data;
}

// ---------------------------------------------------------------- calls
void sgemm(const Check& check, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
           int64_t lda, int64_t stride_a, const float* b, int64_t ldb, int64_t stride_b, float beta, float* c,
           int64_t ldc, int64_t stride_c, int64_t batch, const fl_options* options) {
  check.flag("trans_a", trans_a);
  check.flag("trans_b", trans_b);
  check.size("m", m);
  check.size("n", n);
  check.size("k", k);
  check.size("batch", batch);
  check.matrix("a", a, trans_a ? k : m, trans_a ? m : k, lda, batch, stride_a);
  check.matrix("b", b, trans_b ? n : k, trans_b ? k : n, ldb, batch, stride_b);
  check.matrix("c", c, m, n, ldc, batch, stride_c);
  check.separate_results(m, n, ldc, batch, stride_c);
  const Options parsed = parse(check, options);
  run(SgemmArgs{.m = m,
                .n = n,
                .k = k,
                .batch = batch,
                .alpha = alpha,
                .beta = beta,
                .a = operand(a, lda, trans_a, stride_a),
                .b = operand(b, ldb, trans_b, stride_b),
                .c = {c, ldc, 1, stride_c},
                .precision = parsed.precision},
      parsed.call);
}

void sgemv(const Check& check, int trans, int64_t m, int64_t n, float alpha, const float* a, int64_t lda,
           const float* x, int64_t incx, float beta, float* y, int64_t incy, const fl_options* options) {
  check.flag("trans", trans);
  check.size("m", m);
  check.size("n", n);
  const int64_t size_x = trans ? m : n, size_y = trans ? n : m;
  check.matrix("a", a, m, n, lda);
  check.vector("x", x, size_x, incx);
  check.vector("y", y, size_y, incy);
  run(SgemvArgs{.m = size_y,
                .n = size_x,
                .alpha = alpha,
                .beta = beta,
                .a = operand(a, lda, trans),
                .x = {first_element(x, size_x, incx), incx},
                .y = {first_element(y, size_y, incy), incy}},
      parse(check, options).call);
}

void transpose(const Check& check, int64_t m, int64_t n, const float* a, int64_t lda, float* b, int64_t ldb,
               const fl_options* options) {
  check.size("m", m);
  check.size("n", n);
  check.matrix("a", a, m, n, lda);
  check.matrix("b", b, n, m, ldb);
  const CallOptions call = parse(check, options).call;
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
  run(args, call);
}

// ---------------------------------------------------------------- the kernel table
struct KeptTexts {
  std::mutex mutex;
  std::set<std::string> texts;
};

// A copy of `text` that lives as long as the library. There are few different reasons why a kernel is not available.
const char* keep(const std::string& text) {
  static constinit PerProcess<KeptTexts> all;
  KeptTexts& kept = all.get();
  const std::lock_guard lock(kept.mutex);
  return kept.texts.insert(text).first->c_str();
}

// body.operator()<Args>() of an operation, if there is one with that number.
template <class Body>
bool with_op(fl_op op, Body&& body) {
  bool found = false;
  for_each_operation([&]<class Args>() {
    if (std::size_t(op) != operation_index<Args>()) return;
    found = true;
    body.template operator()<Args>();
  });
  return found;
}
static_assert(FL_SGEMM == operation_index<SgemmArgs>() && FL_SGEMV == operation_index<SgemvArgs>() &&
                  FL_TRANSPOSE == operation_index<TransposeArgs>(),
              "fl_op counts the operations in the order of operations.h");

template <class Args>
void describe_kernel(const Check& check, int index, fl_kernel_info* info) {
  const auto all = kernels<Args>();
  if (index < 0 || index >= int(all.size()))
    check.refuse("index must be in [0, " + std::to_string(all.size()) + "), got " + std::to_string(index));
  const auto& kernel = all[size_t(index)];
  const std::string reason = kernel.run ? why_not(kernel.needs) : cuda::unavailable().message;
  *info = {sizeof *info, kernel.name, on_cuda(kernel.needs) ? "cuda" : "cpu", needs_name(kernel.needs), reason.empty(),
           keep(reason), kernel.blurb};
}

}  // namespace
}  // namespace fl

// ---------------------------------------------------------------- the exported functions
using fl::Check;
using fl::guarded;

const char* fl_last_error(void) { return fl::last_error; }
int fl_last_cuda_error(void) { return fl::last_cuda_error; }

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

int fl_kernel_count(fl_op op) {
  int count = -1;
  if (!fl::with_op(op, [&]<class Args>() { count = int(fl::kernels<Args>().size()); }))
    fl::fail(FL_INVALID_VALUE, "fl_kernel_count: op must be FL_SGEMM, FL_SGEMV or FL_TRANSPOSE");
  return count;
}

fl_status fl_kernel_at(fl_op op, int index, fl_kernel_info* info) {
  return guarded([&] {
    const Check check("fl_kernel_at");
    if (!info) check.refuse("info is NULL");
    if (info->struct_size != sizeof *info)
      check.refuse("info->struct_size is " + std::to_string(info->struct_size) + ", this library knows " +
                   std::to_string(sizeof *info) + "; start from FL_KERNEL_INFO_INIT");
    if (!fl::with_op(op, [&]<class Args>() { fl::describe_kernel<Args>(check, index, info); }))
      check.refuse("op must be FL_SGEMM, FL_SGEMV or FL_TRANSPOSE, got " + std::to_string(int(op)));
  });
}

const char* fl_version(void) { return FASTLINALG_VERSION; }
int fl_cuda_device_count(void) { return fl::cuda::device_count(); }
int fl_get_num_threads(void) { return fl::num_threads(); }
fl_status fl_load_tuning(const char* path) {
  return guarded([&] {
    const std::string complaint = fl::load_tuning(path ? path : fl::tuning_path());
    if (!complaint.empty()) Check("fl_load_tuning").refuse(complaint);
  });
}
fl_status fl_set_num_threads(int n) {
  return guarded([&] { fl::set_num_threads(n); });
}
