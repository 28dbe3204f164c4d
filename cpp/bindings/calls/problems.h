// Checked operands as problem structs: shapes, broadcasting and transposes end here. Nothing is computed.
#pragma once

#include "bindings/arrays/array.h"
#include "bindings/arrays/batch.h"
#include "core/operations.h"
#include "core/problem.h"

namespace fl::py {

// A whole public call but for its result, which may come later and change.
template <class Args>
struct Problem {
  const char* function;  // for messages
  Args args;             // the first problem of the batch; views of the operands, not of the result
  Batch batch;
  Shape shape;          // of the result
  bool column = false;  // the result of a product of matrices has one column, and no dimension for it

  // Calls run(args) for as few problem structs as describe the batch. `result` has the problem's shape. Once only.
  template <class Run>
  void for_each_run(const Array& result, Run&& run);
};

void require_dims(const char* function, const char* name, const Array& x, int least);
void require_matrix(const char* function, const char* name, const Array& x, bool trans);  // if it is to be transposed

// What beta multiplies, and what the caller calls it.
struct Addend {
  nb::handle object = nb::none();
  const char* name = "c";
  bool may_be_unread = false;  // given where beta is 0, as torch's addmm lets it be; else that is a mistake
};
// As broadcast to the result's shape. Throws if it cannot be, is missing where beta needs it, or would not be read. An
// empty array if there is none.
Array checked_addend(const char* function, const Addend& addend, float beta, const Shape& shape,
                     CallLocation& location);

Problem<SgemmArgs> gemm_problem(const char* function, const Array& a, const Array& b, float alpha, float beta,
                                bool trans_a, bool trans_b, Precision precision);
Problem<SgemvArgs> gemv_problem(const char* function, const Array& a, const Array& x, float alpha, float beta,
                                bool trans);
Problem<SgemvArgs> dot_problem(const char* function, const Array& a, const Array& b);
// The same as a product of matrices, whose order of sums precision="reproducible" promises.
Problem<SgemmArgs> column_problem(Problem<SgemvArgs> problem);
// Calls visit() with a product with a vector as a call of that precision computes it.
template <class Visit>
decltype(auto) with_vector_problem(Problem<SgemvArgs> problem, Precision precision, Visit&& visit) {
  return precision == Precision::reproducible ? visit(column_problem(std::move(problem))) : visit(std::move(problem));
}
// Calls visit() with the product of what may be matrices or vectors, by the rules of matmul; it returns one type.
struct ProductTerms {
  const char* function;
  float alpha = 1.0f, beta = 0.0f;
  bool trans_a = false, trans_b = false;
  Precision precision = Precision::accurate;
};
template <class Visit>
decltype(auto) with_product_problem(const ProductTerms& of, const Array& a, const Array& b, Visit&& visit) {
  const bool row = a.ndim() == 1, column = b.ndim() == 1;
  if (!row && !column)
    return visit(gemm_problem(of.function, a, b, of.alpha, of.beta, of.trans_a, of.trans_b, of.precision));
  Problem<SgemvArgs> problem = !row      ? gemv_problem(of.function, a, b, of.alpha, of.beta, of.trans_a)
                               : !column ? gemv_problem(of.function, b, a, of.alpha, of.beta, !of.trans_b)
                                         : dot_problem(of.function, a, b);
  problem.args.alpha = of.alpha, problem.args.beta = of.beta;
  return with_vector_problem(std::move(problem), of.precision, visit);
}
Problem<TransposeArgs> transpose_problem(const char* function, const Array& a);

// An addend of the result's shape that is not loaded into the result. To be set before the result is.
void set_addend(Problem<SgemmArgs>& problem, const Array& addend);
// The result's view, for the first problem of the batch.
void set_result(Problem<SgemmArgs>& problem, const Array& result);
void set_result(Problem<SgemvArgs>& problem, const Array& result);
void set_result(Problem<TransposeArgs>& problem, const Array& result);

// Moves a problem to its place in the batch: one offset and one batch stride for each of for_each_operand.
template <class Args>
void move_operands(Args& args, const int64_t* offsets, const int64_t* strides) {
  for_each_operand(args, [&](auto& view) { view.data += *offsets++, view.bs = *strides++; });
}

template <class Args>
template <class Run>
void Problem<Args>::for_each_run(const Array& result, Run&& run) {
  set_result(*this, result);
  batch.add(result);
  batch.for_each_run([&](int64_t count, const int64_t* offsets, const int64_t* strides) {
    Args at = args;
    at.batch = count;
    move_operands(at, offsets, strides);
    run(at);
  });
}

}  // namespace fl::py
