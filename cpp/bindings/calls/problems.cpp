#include "bindings/calls/problems.h"

#include <utility>

#include "bindings/arrays/call_location.h"
#include "bindings/calls/copies.h"
#include "core/errors.h"

namespace fl::py {
namespace {

// The last two dimensions of a stack of matrices, transposed on request.
struct MatrixDims {
  int64_t rows, cols, rs, cs;
  MatrixDims(const Array& x, bool trans) {
    const int r = x.ndim() - 2, c = x.ndim() - 1;
    rows = x.shape(r), cols = x.shape(c), rs = x.stride(r), cs = x.stride(c);
    if (trans) std::swap(rows, cols), std::swap(rs, cs);
  }
};

int64_t last_stride(const Array& x) { return x.ndim() == 0 ? 1 : x.stride(x.ndim() - 1); }  // a dot product has none

Matrix view_of(const Array& x, bool column) {
  if (column) return {x.data(), last_stride(x), 1};
  const MatrixDims dims(x, false);
  return {x.data(), dims.rs, dims.cs};
}

[[noreturn]] void mismatch(const char* function, const Array& a, const char* a_what, int64_t a_size, const Array& b,
                           const char* b_what, int64_t b_size) {
  throw InvalidValue(std::string(function) + ": operands with shapes " + to_string(a.shape()) + " and " +
                     to_string(b.shape()) + " do not match: " + a_what + " is " + std::to_string(a_size) + ", " +
                     b_what + " is " + std::to_string(b_size));
}

}  // namespace

void require_dims(const char* function, const char* name, const Array& x, int least) {
  if (x.ndim() < least)
    throw InvalidValue(std::string(function) + ": " + name + " must have at least " + std::to_string(least) +
                       " dimension" + (least > 1 ? "s" : "") + ", got shape " + to_string(x.shape()));
}

void require_matrix(const char* function, const char* name, const Array& x, bool trans) {
  if (trans && x.ndim() < 2)
    throw InvalidValue(std::string(function) + ": trans_" + name + " needs a matrix, but " + name + " has shape " +
                       to_string(x.shape()));
}

Array checked_addend(const char* function, const Addend& addend, float beta, const Shape& shape,
                     CallLocation& location) {
  if (addend.object.is_none()) {
    if (beta == 0.0f) return {};
    throw InvalidValue(std::string(function) + ": beta=" + to_string(double(beta)) + " needs " + addend.name +
                       ", which was not given");
  }
  if (beta == 0.0f && !addend.may_be_unread)
    throw InvalidValue(std::string(function) + ": " + addend.name + " was given, but beta is 0, with which it would " +
                       "not be read; pass beta=1 to add it, or out=" + addend.name + " to have the result there");
  Array c(addend.object, addend.name, Array::read, location);
  if (!location.on_device()) c.convert();
  else if (c.stored().converted()) c = float32_copy(c, location);
  if (!c.broadcast_to(shape))
    throw InvalidValue(std::string(function) + ": " + addend.name + " has shape " + to_string(c.shape()) +
                       ", which cannot be broadcast to that of the result, " + to_string(shape));
  return c;
}

Problem<SgemmArgs> gemm_problem(const char* function, const Array& a, const Array& b, float alpha, float beta,
                                bool trans_a, bool trans_b, Precision precision) {
  const MatrixDims da(a, trans_a), db(b, trans_b);
  if (da.cols != db.rows)
    mismatch(function, a, "the number of columns of op(a)", da.cols, b, "the number of rows of op(b)", db.rows);
  Problem<SgemmArgs> problem{.function = function, .batch = Batch({{&a, a.ndim() - 2}, {&b, b.ndim() - 2}}, function)};
  SgemmArgs& p = problem.args;
  p.m = da.rows, p.n = db.cols, p.k = da.cols, p.alpha = alpha, p.beta = beta, p.precision = precision;
  p.a = {a.data(), da.rs, da.cs}, p.b = {b.data(), db.rs, db.cs}, p.stored = {a.stored(), b.stored()};
  problem.shape = problem.batch.shape_with({da.rows, db.cols});
  return problem;
}

Problem<SgemvArgs> gemv_problem(const char* function, const Array& a, const Array& x, float alpha, float beta,
                                bool trans) {
  const MatrixDims da(a, trans);
  const int last = x.ndim() - 1;
  if (da.cols != x.shape(last))
    mismatch(function, a, "the number of columns of op(a)", da.cols, x, "the size of x", x.shape(last));
  Problem<SgemvArgs> problem{.function = function, .batch = Batch({{&a, a.ndim() - 2}, {&x, last}}, function)};
  SgemvArgs& p = problem.args;
  p.m = da.rows, p.n = da.cols, p.alpha = alpha, p.beta = beta, p.stored = {a.stored(), x.stored()};
  p.a = {a.data(), da.rs, da.cs}, p.x = {x.data(), x.stride(last)};
  problem.shape = problem.batch.shape_with({da.rows});
  return problem;
}

Problem<SgemvArgs> dot_problem(const char* function, const Array& a, const Array& b) {
  if (a.shape(0) != b.shape(0)) mismatch(function, a, "the size of a", a.shape(0), b, "the size of b", b.shape(0));
  return {.function = function,
          .args = {.m = 1,
                   .n = a.shape(0),
                   .a = {a.data(), 0, a.stride(0)},
                   .x = {b.data(), b.stride(0)},
                   .stored = {a.stored(), b.stored()}},
          .batch = Batch({{&a, 0}, {&b, 0}}, function)};
}

Problem<TransposeArgs> transpose_problem(const char* function, const Array& a) {
  const MatrixDims da(a, false);
  Problem<TransposeArgs> problem{
      .function = function,
      .args = {.m = da.rows, .n = da.cols, .a = {a.data(), da.rs, da.cs}, .stored = {a.stored()}},
      .batch = Batch({{&a, a.ndim() - 2}}, function)};
  problem.shape = problem.batch.shape_with({da.cols, da.rows});
  return problem;
}

Problem<SgemmArgs> column_problem(Problem<SgemvArgs> problem) {
  const SgemvArgs& p = problem.args;
  return {.function = problem.function,
          .args = {.m = p.m,
                   .n = 1,
                   .k = p.n,
                   .alpha = p.alpha,
                   .beta = p.beta,
                   .a = p.a,
                   .b = {p.x.data, p.x.inc, 1},
                   .precision = Precision::reproducible,
                   .stored = p.stored},
          .batch = std::move(problem.batch),
          .shape = std::move(problem.shape),
          .column = true};
}

void set_addend(Problem<SgemmArgs>& problem, const Array& addend) {
  const Matrix view = view_of(addend, problem.column);
  problem.args.addend = {view.data, view.rs, view.cs};
  problem.batch.add(addend);
}

void set_result(Problem<SgemmArgs>& problem, const Array& result) { problem.args.c = view_of(result, problem.column); }
void set_result(Problem<SgemvArgs>& problem, const Array& result) {
  problem.args.y = {result.data(), last_stride(result)};
}
void set_result(Problem<TransposeArgs>& problem, const Array& result) { problem.args.b = view_of(result, false); }

}  // namespace fl::py
