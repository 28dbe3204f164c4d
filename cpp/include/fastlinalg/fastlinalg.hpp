// fastlinalg for C++17: the C interface with exceptions, defaults and std::string. Header only, without CUDA headers.
//
//   std::invalid_argument    an argument: sizes, leading dimensions, null pointers, names
//   std::bad_alloc           host or device memory; the next call works
//   fastlinalg::cuda_error   no usable CUDA device, or a CUDA call failed
//   std::runtime_error       a fault of fastlinalg
//
// Layout and the meaning of every argument are those of fastlinalg.h.
#ifndef FASTLINALG_HPP
#define FASTLINALG_HPP

#include <fastlinalg/fastlinalg.h>

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace fastlinalg {

class cuda_error : public std::runtime_error {
 public:
  cuda_error(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const noexcept { return code_; }  // the cudaError_t

 private:
  int code_;
};

// A std::bad_alloc that says how much was asked for.
class out_of_memory : public std::bad_alloc {
 public:
  explicit out_of_memory(const char* message) : message_(message) {}
  const char* what() const noexcept override { return message_.what(); }

 private:
  std::runtime_error message_;  // unlike std::string it copies without throwing
};

enum class precision { accurate = FL_ACCURATE, strict = FL_STRICT };

struct options {
  std::string kernel = {};  // empty: the fastest for this call
  fastlinalg::precision precision = fastlinalg::precision::accurate;
  std::string device = "auto";  // or "cpu", "cuda", "cuda:1"
  void* stream = nullptr;       // cudaStream_t
  bool device_memory = false;   // pointers are memory of `device`; the call returns once it is queued on `stream`
};

struct kernel {
  std::string name, device, needs;
  bool available;
  std::string reason, blurb;
};

namespace detail {

inline void check(fl_status status) {
  switch (status) {
    case FL_OK: return;
    case FL_INVALID_VALUE: throw std::invalid_argument(fl_last_error());
    case FL_OUT_OF_MEMORY: throw out_of_memory(fl_last_error());
    case FL_CUDA_ERROR: throw cuda_error(fl_last_cuda_error(), fl_last_error());
    case FL_INTERNAL_ERROR: break;
  }
  throw std::runtime_error(fl_last_error());
}

inline fl_options to_c(const options& from) {
  fl_options to = FL_OPTIONS_INIT;
  to.kernel = from.kernel.empty() ? nullptr : from.kernel.c_str();
  to.precision = static_cast<fl_precision>(from.precision);
  to.device = from.device.c_str();
  to.stream = from.stream;
  to.device_memory = from.device_memory;
  return to;
}

}  // namespace detail

inline void sgemm(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                  const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
                  std::int64_t ldc, const options& opts = {}) {
  const fl_options c_options = detail::to_c(opts);
  detail::check(fl_sgemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, &c_options));
}

inline void sgemm_batched_strided(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                                  float alpha, const float* a, std::int64_t lda, std::int64_t stride_a, const float* b,
                                  std::int64_t ldb, std::int64_t stride_b, float beta, float* c, std::int64_t ldc,
                                  std::int64_t stride_c, std::int64_t batch, const options& opts = {}) {
  const fl_options c_options = detail::to_c(opts);
  detail::check(fl_sgemm_batched_strided(trans_a, trans_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c,
                                         ldc, stride_c, batch, &c_options));
}

inline void sgemv(bool trans, std::int64_t m, std::int64_t n, float alpha, const float* a, std::int64_t lda,
                  const float* x, std::int64_t incx, float beta, float* y, std::int64_t incy,
                  const options& opts = {}) {
  const fl_options c_options = detail::to_c(opts);
  detail::check(fl_sgemv(trans, m, n, alpha, a, lda, x, incx, beta, y, incy, &c_options));
}

inline void transpose(std::int64_t m, std::int64_t n, const float* a, std::int64_t lda, float* b, std::int64_t ldb,
                      const options& opts = {}) {
  const fl_options c_options = detail::to_c(opts);
  detail::check(fl_transpose(m, n, a, lda, b, ldb, &c_options));
}

// Every kernel of one operation, also those that cannot run here.
inline std::vector<kernel> kernels(fl_op op) {
  std::vector<kernel> rows;
  for (int i = 0, count = fl_kernel_count(op); i < count; ++i) {
    fl_kernel_info info = FL_KERNEL_INFO_INIT;
    detail::check(fl_kernel_at(op, i, &info));
    rows.push_back({info.name, info.device, info.needs, info.available != 0, info.reason, info.blurb});
  }
  return rows;
}

// Follow what `fastlinalg tune` measured on this machine; "" is the file that the command writes.
inline void load_tuning(const std::string& path = "") {
  detail::check(fl_load_tuning(path.empty() ? nullptr : path.c_str()));
}

inline std::string version() { return fl_version(); }
inline int cuda_device_count() { return fl_cuda_device_count(); }
inline int get_num_threads() { return fl_get_num_threads(); }
inline void set_num_threads(int n) { detail::check(fl_set_num_threads(n)); }

}  // namespace fastlinalg

#endif
