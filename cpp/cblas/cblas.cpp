// The names of the CBLAS, on the C interface. Matrices of columns are those of rows transposed, so that a call becomes
// one of fastlinalg.h.
#include <fastlinalg/cblas.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>

// ---------------------------------------------------------------- errors
// Weak, so that a program may define its own beside a static library too.
extern "C" __attribute__((weak)) void cblas_xerbla(int position, const char* function, const char* form, ...) {
  if (position) std::fprintf(stderr, "Parameter %d to routine %s was incorrect\n", position, function);
  va_list values;
  va_start(values, form);
  std::vfprintf(stderr, form, values);
  va_end(values);
}

namespace {

// Reports the first argument that is wrong, in the order in which they are asked about.
class Check {
 public:
  explicit Check(const char* function) : function_(function) {}

  void setting(int position, const char* name, int value, bool allowed) {
    require(allowed, position, "Illegal %s setting, %d\n", name, value);
  }
  void layout(CBLAS_LAYOUT value) { setting(1, "layout", value, value == CblasRowMajor || value == CblasColMajor); }
  void transpose(int position, const char* name, CBLAS_TRANSPOSE value) {
    setting(position, name, value, value == CblasNoTrans || value == CblasTrans || value == CblasConjTrans);
  }
  void size(int position, const char* name, int value) { at_least(position, name, value, 0); }
  void at_least(int position, const char* name, int value, int least) {
    require(value >= least, position, "Illegal %s: %d, must be at least %d\n", name, value, least);
  }
  void increment(int position, const char* name, int value) { require(value != 0, position, "Illegal %s: 0\n", name); }
  void leading(int position, const char* name, int value, int least) {
    at_least(position, name, value, std::max(1, least));
  }
  void done(fl_status status) {
    ok_ = status == FL_OK;
    if (!ok_) cblas_xerbla(0, function_, "%s: %s\n", function_, fl_last_error());
  }
  bool ok() const { return ok_; }

 private:
  template <class... Values>
  void require(bool allowed, int position, const char* form, Values... values) {
    if (!ok_ || allowed) return;
    ok_ = false;
    cblas_xerbla(position, function_, form, values...);
  }

  const char* function_;
  bool ok_ = true;
};

bool transposed(CBLAS_TRANSPOSE trans) { return trans == CblasTrans || trans == CblasConjTrans; }

void scale_rows(int64_t rows, int64_t cols, float alpha, const float* a, int64_t lda, float* b, int64_t ldb) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) b[i * ldb + j] = alpha == 0.0f ? 0.0f : alpha * a[i * lda + j];
}

}  // namespace

// ---------------------------------------------------------------- the functions
// With matrices of rows the reference asks about the problem that it hands on, that of the transposes: n before m.
void cblas_sgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, int m, int n, int k,
                 float alpha, const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc) {
  Check check("cblas_sgemm");
  check.layout(layout);
  check.transpose(2, "TransA", trans_a);
  check.transpose(3, "TransB", trans_b);
  if (!check.ok()) return;
  const bool rows = layout == CblasRowMajor, ta = transposed(trans_a), tb = transposed(trans_b);
  const auto check_a = [&] { check.leading(9, "lda", lda, rows == ta ? m : k); };
  const auto check_b = [&] { check.leading(11, "ldb", ldb, rows == tb ? k : n); };
  if (rows) check.size(5, "N", n), check.size(4, "M", m);
  else check.size(4, "M", m), check.size(5, "N", n);
  check.size(6, "K", k);
  if (rows) check_b(), check_a();
  else check_a(), check_b();
  check.leading(14, "ldc", ldc, rows ? n : m);
  if (!check.ok() || m == 0 || n == 0 || ((alpha == 0.0f || k == 0) && beta == 1.0f)) return;
  if (alpha == 0.0f) k = 0;  // the operands are not looked at, and may be anything
  check.done(rows ? fl_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, nullptr)
                  : fl_sgemm(tb, ta, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc, nullptr));
}

void cblas_sgemv(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, int m, int n, float alpha, const float* a, int lda,
                 const float* x, int incx, float beta, float* y, int incy) {
  Check check("cblas_sgemv");
  check.layout(layout);
  check.transpose(2, "TransA", trans);
  if (!check.ok()) return;
  const bool rows = layout == CblasRowMajor;
  if (rows) check.size(4, "N", n), check.size(3, "M", m);
  else check.size(3, "M", m), check.size(4, "N", n);
  check.leading(7, "lda", lda, rows ? n : m);
  check.increment(9, "incX", incx);
  check.increment(12, "incY", incy);
  if (!check.ok() || m == 0 || n == 0 || (alpha == 0.0f && beta == 1.0f)) return;
  if (alpha == 0.0f)  // the operands are not looked at
    return check.done(fl_sgemv(0, transposed(trans) ? n : m, 0, 0.0f, a, 1, x, incx, beta, y, incy, nullptr));
  check.done(rows ? fl_sgemv(transposed(trans), m, n, alpha, a, lda, x, incx, beta, y, incy, nullptr)
                  : fl_sgemv(!transposed(trans), n, m, alpha, a, lda, x, incx, beta, y, incy, nullptr));
}

void cblas_ssyrk(CBLAS_LAYOUT layout, CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans, int n, int k, float alpha, const float* a,
                 int lda, float beta, float* c, int ldc) {
  Check check("cblas_ssyrk");
  check.layout(layout);
  check.setting(2, "Uplo", uplo, uplo == CblasUpper || uplo == CblasLower);
  check.transpose(3, "Trans", trans);
  if (!check.ok()) return;
  const bool rows = layout == CblasRowMajor;
  check.size(4, "N", n);
  check.size(5, "K", k);
  check.leading(8, "lda", lda, rows == transposed(trans) ? n : k);
  check.leading(11, "ldc", ldc, n);
  if (!check.ok() || n == 0 || ((alpha == 0.0f || k == 0) && beta == 1.0f)) return;
  const bool lower = rows == (uplo == CblasLower), ta = rows == transposed(trans);
  // With alpha == 0 the operand is not looked at, and may be anything.
  check.done(fl_ssyrk(lower ? FL_LOWER : FL_UPPER, ta, n, alpha == 0.0f ? 0 : k, alpha, a, lda, beta, c, ldc, nullptr));
}

void cblas_somatcopy(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, int rows, int cols, float alpha, const float* a,
                     int lda, float* b, int ldb) {
  Check check("cblas_somatcopy");
  check.layout(layout);
  if (trans != CblasConjNoTrans) check.transpose(2, "Trans", trans);
  check.size(3, "rows", rows);
  check.size(4, "cols", cols);
  if (!check.ok()) return;
  const bool turns = transposed(trans);
  const int m = layout == CblasRowMajor ? rows : cols, n = layout == CblasRowMajor ? cols : rows;
  check.leading(7, "lda", lda, n);
  check.leading(9, "ldb", ldb, turns ? m : n);
  if (!check.ok()) return;
  if (!turns) return scale_rows(m, n, alpha, a, lda, b, ldb);
  if (alpha != 0.0f) check.done(fl_transpose(m, n, a, lda, b, ldb, nullptr));
  if (check.ok() && alpha != 1.0f) scale_rows(n, m, alpha, b, ldb, b, ldb);
}
