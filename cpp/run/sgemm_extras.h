// What only products of matrices have on a call's way: precisions, operands that stay from call to call, symmetric
// results. The templates are for all other operations.
#pragma once

#include "run/decision.h"

namespace fl {

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
constexpr bool answers_later(const auto&, const CallOptions&) { return false; }
void log_answer(const Chosen<SgemmArgs>& chosen, int device, const CallOptions& options, const unsigned* statuses);
constexpr void log_answer(const auto&, int, const CallOptions&, const unsigned*) {}

// ---------------------------------------------------------------- operands that stay
SgemmArgs with_constant_operand(SgemmArgs args, const CallOptions& options);
constexpr const auto& with_constant_operand(const auto& args, const CallOptions&) { return args; }

// False, and nothing has happened, if there is none or nothing is kept of it.
bool run_on_constant_operand(const Launch<SgemmArgs>& launch, const CallOptions& options);
constexpr bool run_on_constant_operand(const auto&, const CallOptions&) { return false; }

// Of a plan: what is kept of its constant operand, and whether other arguments have another.
PrepackedOperands operands_to_prepack(const Launch<SgemmArgs>& launch, const SgemmArgs& given,
                                      const CallOptions& options);
PrepackedOperands operands_to_prepack(const auto&, const auto&, const CallOptions&) { return {}; }
bool constant_moves(const SgemmArgs& before, const SgemmArgs& now, const CallOptions& options);
constexpr bool constant_moves(const auto&, const auto&, const CallOptions&) { return false; }

}  // namespace fl
