// What only products of matrices have on a call's way: one row or one column, precisions, operands that stay from call
// to call, symmetric results. The templates are for all other operations.
#pragma once

#include <utility>

#include "run/decision.h"

namespace fl {

// ---------------------------------------------------------------- one row or one column
// Such a product is a matrix-vector product, if no kernel was asked for and no order of its sums.
inline bool is_vector_product(const SgemmArgs& p, const CallOptions& options) {
  return (p.m == 1 || p.n == 1) && options.kernel.empty() && p.precision != Precision::reproducible;
}
// Its addend has to be in C.
inline SgemvArgs as_gemv(const SgemmArgs& p) {
  SgemvArgs v{.m = p.m, .n = p.k, .batch = p.batch, .alpha = p.alpha, .beta = p.beta, .a = p.a, .x = {}, .y = {}};
  v.x = {p.b.data, p.b.rs, p.b.bs}, v.y = {p.c.data, p.c.rs, p.c.bs}, v.stored = p.stored;
  if (p.n == 1) return v;
  v.m = p.n, v.a = {p.b.data, p.b.cs, p.b.rs, p.b.bs};
  v.x = {p.a.data, p.a.cs, p.a.bs}, v.y = {p.c.data, p.c.cs, p.c.bs};
  std::swap(v.stored[0], v.stored[1]);
  return v;
}

// Returns visit(problem, options) of what computes the call.
template <class Visit>
auto as_computed(const SgemmArgs& args, const CallOptions& options, Visit&& visit) {
  if (!is_vector_product(args, options)) return visit(args, options);
  return visit(as_gemv(args), options);
}
auto as_computed(const auto& args, const CallOptions& options, auto&& visit) { return visit(args, options); }

// ---------------------------------------------------------------- symmetric products
// Of rows that compute one triangle the accurate ones do where it is faster, and the strict ones where k is not cut, on
// a GPU from some length of k on.
bool takes_triangle(const Kernel<SgemmArgs>& kernel, const SgemmArgs& args);
constexpr bool takes_triangle(const auto&, const auto&) { return false; }

// A plan for operands in host memory loads both, or the one that both are.
constexpr bool same_symmetry(const SgemmArgs& x, const SgemmArgs& y) { return x.symmetric == y.symmetric; }
constexpr bool same_symmetry(const auto&, const auto&) { return true; }

// ---------------------------------------------------------------- precisions
// Only precision="accurate" allows another kernel: the others have to give the same bits every time.
bool make_strict(SgemmArgs& p);
constexpr bool make_strict(auto&) { return false; }

// The kernels that serve precision="accurate" alone decide on the device who computes. The log says so afterwards, from
// what they leave there.
bool answers_later(const Chosen<SgemmArgs>& chosen, const CallOptions& options);
template <class Args>
constexpr bool answers_later(const Chosen<Args>&, const CallOptions&) {
  return false;
}
void log_answer(const Chosen<SgemmArgs>& chosen, int device, const CallOptions& options, const unsigned* statuses);
template <class Args>
constexpr void log_answer(const Chosen<Args>&, int, const CallOptions&, const unsigned*) {}

// ---------------------------------------------------------------- operands that stay
SgemmArgs with_constant_operand(SgemmArgs args, const CallOptions& options);
constexpr const auto& with_constant_operand(const auto& args, const CallOptions&) { return args; }

// False, and nothing has happened, if there is none or nothing is kept of it.
bool run_on_constant_operand(const Launch<SgemmArgs>& launch, const CallOptions& options);
constexpr bool run_on_constant_operand(const auto&, const CallOptions&) { return false; }

// Of a plan: what is kept of its constant operand, and whether other arguments have another.
PrepackedOperands operands_to_prepack(const Chosen<SgemmArgs>& chosen, const SgemmArgs& given,
                                      const CallOptions& options);
PrepackedOperands operands_to_prepack(const auto&, const auto&, const CallOptions&) { return {}; }
bool constant_moves(const SgemmArgs& before, const SgemmArgs& now, const CallOptions& options);
constexpr bool constant_moves(const auto&, const auto&, const CallOptions&) { return false; }

}  // namespace fl
