// fastlinalg for C++17: the C interface with exceptions, defaults and std::string. Header only, without CUDA headers.
//
//   std::invalid_argument    an argument: sizes, leading dimensions, null pointers, names
//   std::bad_alloc           host or device memory; the next call works
//   fastlinalg::cuda_error   no usable CUDA device, or a CUDA call failed
//   std::runtime_error       a fault of fastlinalg
//
// Layout and the meaning of every argument are those of fastlinalg.h. The short forms leave out flags, alpha and beta:
// operands as they are stored, a result that is overwritten, vectors without gaps.
#ifndef FASTLINALG_HPP
#define FASTLINALG_HPP

#include <fastlinalg/fastlinalg.h>

#include <cstddef>
#include <cstdint>
#include <memory>
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

enum class precision { accurate = FL_ACCURATE, strict = FL_STRICT, reproducible = FL_REPRODUCIBLE };

enum class dtype { float32 = FL_FLOAT32, float16 = FL_FLOAT16, bfloat16 = FL_BFLOAT16 };

struct options {
  std::string kernel = {};  // empty: the fastest for this call
  fastlinalg::precision precision = fastlinalg::precision::accurate;
  std::string device = "auto";  // or "cpu", "cuda", "cuda:1", "cuda:all", "cuda:0,cuda:2"
  void* stream = nullptr;       // cudaStream_t
  bool device_memory = false;   // pointers are memory of `device`; the call returns once it is queued on `stream`
  dtype a_type = dtype::float32, b_type = dtype::float32;  // of A, and of B or x
};

enum class uplo { whole = FL_WHOLE, lower = FL_LOWER, upper = FL_UPPER };
enum class operand { none = FL_NO_OPERAND, a = FL_OPERAND_A, b = FL_OPERAND_B };

// What a kernel is, besides what it computes: the fields of fl_kernel_info.
struct traits {
  bool strict, ladder;
  int tile_rows, tile_cols;
  std::string terms;
  bool split_k, cluster_k, stream_k, tma;
  std::string measured_on;
  bool addend, triangle, reproducible;
};

struct kernel {
  std::string name, device, needs;
  bool available;
  std::string reason, blurb, passed_over;
  fastlinalg::traits traits;
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

// An argument of a call, for as long as that lasts.
struct c_options {
  fl_options of;
  operator const fl_options*() const noexcept { return &of; }
};
inline c_options to_c(const options& from) {
  fl_options to = FL_OPTIONS_INIT;
  to.kernel = from.kernel.empty() ? nullptr : from.kernel.c_str();
  to.precision = static_cast<fl_precision>(from.precision);
  to.device = from.device.c_str();
  to.stream = from.stream;
  to.device_memory = from.device_memory;
  to.a_type = static_cast<fl_dtype>(from.a_type);
  to.b_type = static_cast<fl_dtype>(from.b_type);
  return {to};
}

}  // namespace detail

inline void sgemm(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                  const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
                  std::int64_t ldc, const options& opts = {}) {
  detail::check(fl_sgemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, detail::to_c(opts)));
}

// C = A B.
inline void sgemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, const float* b,
                  std::int64_t ldb, float* c, std::int64_t ldc, const options& opts = {}) {
  sgemm(false, false, m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc, opts);
}

inline void sgemm_batched_strided(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                                  float alpha, const float* a, std::int64_t lda, std::int64_t stride_a, const float* b,
                                  std::int64_t ldb, std::int64_t stride_b, float beta, float* c, std::int64_t ldc,
                                  std::int64_t stride_c, std::int64_t batch, const options& opts = {}) {
  detail::check(fl_sgemm_batched_strided(trans_a, trans_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c,
                                         ldc, stride_c, batch, detail::to_c(opts)));
}

// sgemm() for each of them, beside each other. Start each from FL_SGEMM_PROBLEM_INIT.
inline void sgemm_grouped(const std::vector<fl_sgemm_problem>& problems, const options& opts = {}) {
  detail::check(fl_sgemm_grouped(std::int64_t(problems.size()), problems.data(), detail::to_c(opts)));
}

inline void ssyrk(uplo part, bool trans, std::int64_t n, std::int64_t k, float alpha, const float* a, std::int64_t lda,
                  float beta, float* c, std::int64_t ldc, const options& opts = {}) {
  detail::check(fl_ssyrk(static_cast<fl_uplo>(part), trans, n, k, alpha, a, lda, beta, c, ldc, detail::to_c(opts)));
}

// C = A A^T, the whole of it.
inline void ssyrk(std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, float* c, std::int64_t ldc,
                  const options& opts = {}) {
  ssyrk(uplo::whole, false, n, k, 1.0f, a, lda, 0.0f, c, ldc, opts);
}

inline void sgemv(bool trans, std::int64_t m, std::int64_t n, float alpha, const float* a, std::int64_t lda,
                  const float* x, std::int64_t incx, float beta, float* y, std::int64_t incy,
                  const options& opts = {}) {
  detail::check(fl_sgemv(trans, m, n, alpha, a, lda, x, incx, beta, y, incy, detail::to_c(opts)));
}

// y = A x.
inline void sgemv(std::int64_t m, std::int64_t n, const float* a, std::int64_t lda, const float* x, float* y,
                  const options& opts = {}) {
  sgemv(false, m, n, 1.0f, a, lda, x, 1, 0.0f, y, 1, opts);
}

inline void sgemv_batched_strided(bool trans, std::int64_t m, std::int64_t n, float alpha, const float* a,
                                  std::int64_t lda, std::int64_t stride_a, const float* x, std::int64_t incx,
                                  std::int64_t stride_x, float beta, float* y, std::int64_t incy, std::int64_t stride_y,
                                  std::int64_t batch, const options& opts = {}) {
  detail::check(fl_sgemv_batched_strided(trans, m, n, alpha, a, lda, stride_a, x, incx, stride_x, beta, y, incy,
                                         stride_y, batch, detail::to_c(opts)));
}

inline void transpose(std::int64_t m, std::int64_t n, const float* a, std::int64_t lda, float* b, std::int64_t ldb,
                      const options& opts = {}) {
  detail::check(fl_transpose(m, n, a, lda, b, ldb, detail::to_c(opts)));
}

inline void transpose_batched_strided(std::int64_t m, std::int64_t n, const float* a, std::int64_t lda,
                                      std::int64_t stride_a, float* b, std::int64_t ldb, std::int64_t stride_b,
                                      std::int64_t batch, const options& opts = {}) {
  detail::check(fl_transpose_batched_strided(m, n, a, lda, stride_a, b, ldb, stride_b, batch, detail::to_c(opts)));
}

// Which kernel a call takes and why. Nothing is computed or read.
struct explanation {
  std::string kernel, device;  // empty where nothing would be computed
  double estimated_us;
  std::int64_t steps;
  bool triangle;
  std::string text;

  static explanation of_sgemm(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                              const options& opts = {}, std::int64_t batch = 1) {
    const std::int64_t lda = trans_a ? m : k, ldb = trans_b ? k : n;
    return of(fl_explain_sgemm, trans_a, trans_b, m, n, k, 1.0f, nullptr, row(lda), m * k, nullptr, row(ldb), k * n,
              0.0f, nullptr, row(n), m * n, batch, detail::to_c(opts));
  }
  static explanation of_sgemv(bool trans, std::int64_t m, std::int64_t n, const options& opts = {},
                              std::int64_t batch = 1) {
    const std::int64_t size_x = trans ? m : n, size_y = trans ? n : m;
    return of(fl_explain_sgemv, trans, m, n, 1.0f, nullptr, row(n), m * n, nullptr, 1, size_x, 0.0f, nullptr, 1, size_y,
              batch, detail::to_c(opts));
  }
  static explanation of_transpose(std::int64_t m, std::int64_t n, const options& opts = {}, std::int64_t batch = 1) {
    return of(fl_explain_transpose, m, n, nullptr, row(n), m * n, nullptr, row(m), m * n, batch, detail::to_c(opts));
  }
  // Of a call with these strides and addresses there is fl_explain_sgemm() itself.
  explicit explanation(const fl_explanation& from)
      : kernel(from.kernel),
        device(from.device),
        estimated_us(from.estimated_us),
        steps(from.steps),
        triangle(from.triangle != 0),
        text(from.text) {}

 private:
  template <class Explain, class... Given>
  static explanation of(Explain explain, Given... given) {
    fl_explanation found = FL_EXPLANATION_INIT;
    detail::check(explain(&found, given...));
    return explanation(found);
  }
  static std::int64_t row(std::int64_t length) { return length > 0 ? length : 1; }
};

// A call that is decided once and executed many times; threads that share one take turns. Operands are those that it
// was made for, or that reset_operands() has named since.
class plan {
 public:
  static plan sgemm(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                    const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
                    std::int64_t ldc, const options& opts = {}, operand constant = operand::none) {
    return sgemm_batched_strided(trans_a, trans_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1, opts,
                                 constant);
  }
  static plan sgemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, const float* b,
                    std::int64_t ldb, float* c, std::int64_t ldc, const options& opts = {},
                    operand constant = operand::none) {
    return sgemm(false, false, m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc, opts, constant);
  }
  static plan sgemm_batched_strided(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                                    float alpha, const float* a, std::int64_t lda, std::int64_t stride_a,
                                    const float* b, std::int64_t ldb, std::int64_t stride_b, float beta, float* c,
                                    std::int64_t ldc, std::int64_t stride_c, std::int64_t batch,
                                    const options& opts = {}, operand constant = operand::none) {
    return made(fl_plan_sgemm, trans_a, trans_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
                stride_c, batch, static_cast<fl_operand>(constant), detail::to_c(opts));
  }
  static plan sgemm_grouped(const std::vector<fl_sgemm_problem>& problems, const options& opts = {}) {
    return made(fl_plan_sgemm_grouped, std::int64_t(problems.size()), problems.data(), detail::to_c(opts));
  }
  static plan sgemv(bool trans, std::int64_t m, std::int64_t n, float alpha, const float* a, std::int64_t lda,
                    const float* x, std::int64_t incx, float beta, float* y, std::int64_t incy,
                    const options& opts = {}) {
    return made(fl_plan_sgemv, trans, m, n, alpha, a, lda, x, incx, beta, y, incy, detail::to_c(opts));
  }
  static plan sgemv_batched_strided(bool trans, std::int64_t m, std::int64_t n, float alpha, const float* a,
                                    std::int64_t lda, std::int64_t stride_a, const float* x, std::int64_t incx,
                                    std::int64_t stride_x, float beta, float* y, std::int64_t incy,
                                    std::int64_t stride_y, std::int64_t batch, const options& opts = {}) {
    return made(fl_plan_sgemv_batched_strided, trans, m, n, alpha, a, lda, stride_a, x, incx, stride_x, beta, y, incy,
                stride_y, batch, detail::to_c(opts));
  }

  void execute(void* stream = nullptr) { detail::check(fl_plan_execute(plan_.get(), stream)); }
  // nullptr leaves an operand as it is; a constant one that is given has new values.
  void reset_operands(const float* a, const float* b, float* c) {
    detail::check(fl_plan_reset_operands(plan_.get(), a, b, c));
  }
  std::string kernel() const { return info().kernel; }
  int device() const { return info().device; }  // a CUDA device's ordinal, or -1 for the CPU
  std::size_t workspace_bytes() const { return info().workspace_bytes; }

 private:
  struct free_plan {
    void operator()(fl_plan* p) const noexcept { fl_plan_free(p); }
  };
  explicit plan(fl_plan* made) : plan_(made) {}
  template <class Make, class... Given>
  static plan made(Make make, Given... given) {
    fl_plan* result = nullptr;
    detail::check(make(&result, given...));
    return plan(result);
  }
  fl_plan_info info() const {
    fl_plan_info now = FL_PLAN_INFO_INIT;
    detail::check(fl_plan_get_info(plan_.get(), &now));
    return now;
  }

  std::unique_ptr<fl_plan, free_plan> plan_;
};

// Device memory of the library's pool. Copies are done on return.
class device_buffer {
 public:
  explicit device_buffer(std::size_t bytes, int device = 0) {
    fl_buffer* made = nullptr;
    detail::check(fl_buffer_create(&made, device, bytes));
    buffer_.reset(made);
  }
  float* data() const noexcept { return fl_buffer_data(buffer_.get()); }
  void upload(const void* host, std::size_t bytes, std::size_t offset = 0) {
    detail::check(fl_buffer_upload(buffer_.get(), offset, host, bytes));
  }
  void download(void* host, std::size_t bytes, std::size_t offset = 0) const {
    detail::check(fl_buffer_download(buffer_.get(), offset, host, bytes));
  }

 private:
  struct free_buffer {
    void operator()(fl_buffer* p) const noexcept { fl_buffer_free(p); }
  };
  std::unique_ptr<fl_buffer, free_buffer> buffer_;
};

inline void* own_stream(int device = 0) {
  void* stream = nullptr;
  detail::check(fl_own_stream(device, &stream));
  return stream;
}
inline void order_after(int device, void* later, void* earlier) {
  detail::check(fl_order_after(device, later, earlier));
}

inline fl_memory_info memory_info(int device = 0) {
  fl_memory_info now = FL_MEMORY_INFO_INIT;
  detail::check(fl_get_memory_info(device, &now));
  return now;
}
inline void set_memory_limit(std::size_t bytes, int device = 0) { detail::check(fl_set_memory_limit(device, bytes)); }
inline void trim(int device = 0) { detail::check(fl_trim(device)); }

inline fl_info info() {
  fl_info found = FL_INFO_INIT;
  detail::check(fl_get_info(&found));
  return found;
}

// The CUDA devices. None is a normal state, whose reason is info().cuda_message.
inline std::vector<fl_device_info> devices() {
  std::vector<fl_device_info> found(std::size_t(fl_cuda_device_count()), FL_DEVICE_INFO_INIT);
  for (std::size_t i = 0; i < found.size(); ++i) detail::check(fl_get_device_info(int(i), &found[i]));
  return found;
}

// Every kernel of one operation, also those that cannot run here.
inline std::vector<kernel> kernels(fl_op op) {
  std::vector<kernel> rows;
  const int count = fl_kernel_count(op);
  if (count < 0) throw std::invalid_argument(fl_last_error());
  for (int i = 0; i < count; ++i) {
    fl_kernel_info info = FL_KERNEL_INFO_INIT;
    detail::check(fl_kernel_at(op, i, &info));
    const traits what{info.strict != 0,  info.ladder != 0,    info.tile_rows,        info.tile_cols, info.terms,
                      info.split_k != 0, info.cluster_k != 0, info.stream_k != 0,    info.tma != 0,  info.measured_on,
                      info.addend != 0,  info.triangle != 0,  info.reproducible != 0};
    rows.push_back(
        {info.name, info.device, info.needs, info.available != 0, info.reason, info.blurb, info.passed_over, what});
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
inline int max_threads() { return fl_max_threads(); }

// So many threads for the calls of the process, while it lives.
class num_threads {
 public:
  explicit num_threads(int n) : before_(get_num_threads()) { set_num_threads(n); }
  ~num_threads() { fl_set_num_threads(before_); }
  num_threads(const num_threads&) = delete;
  num_threads& operator=(const num_threads&) = delete;

 private:
  int before_;
};

inline void set_log(fl_log_function write, void* user = nullptr) { detail::check(fl_set_log(write, user)); }

}  // namespace fastlinalg

#endif
