// A checked problem with its addend and its target: where every public function ends.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/arrays/gil.h"
#include "bindings/calls/call.h"
#include "bindings/calls/copies.h"
#include "bindings/calls/problems.h"

namespace fl::py {

// What beta multiplies is read where it lies, or loaded into the target.
template <class Args>
void take_addend(Problem<Args>& problem, const Array& c, Target& target, const CallLocation& location) {
  if constexpr (std::is_same_v<Args, SgemmArgs>)
    if (location.on_device() && target.leaves_alone(c)) return set_addend(problem, c);
  target.preload(c);
}

// Whether the matrices of a stack lie between each other's elements. They would in a converted copy, whose order is
// that of the strides: a product with a vector adds up in another order there.
inline bool interleaved(const Array& x) {
  const std::vector<int> order = x.farthest_first();
  return !order.empty() && order.back() + 2 < x.ndim();
}

// In device memory: stacks that with this result are not one batch, or interleave. A copy of a part would begin at
// another alignment, or be in the part's order.
template <class Args>
bool convert_stacks(Problem<Args> problem, const Array& result, std::array<Array*, 2> inputs, CallLocation& location) {
  int runs = 0;
  problem.for_each_run(result, [&](const Args&) { ++runs; });
  bool any = false;
  for (Array* const x : inputs)
    if (x && x->stored().converted() && (runs > 1 || interleaved(*x))) *x = float32_copy(*x, location), any = true;
  return any;
}

// Has operands of other types converted: on a GPU by the call, on their way there too, where `options` then say that it
// goes, while they are read if its kernel can, else now. False if none is by now; true if `problem` is to be made anew.
template <class Args>
bool convert(const Problem<Args>& problem, const Array& result, std::array<Array*, 2> inputs, Options& options,
             CallLocation& location) {
  const auto& stored = problem.args.stored;
  if (!stored[0].converted() && !stored[1].converted()) return false;
  if (location.on_device()) return convert_stacks(problem, result, inputs, location);
  Device device{Device::cpu, 0};
  Problem<Args> copy = problem;
  copy.args.stored = {};
  before_any_call(options);
  copy.for_each_run(result, [&](const Args& args) {
    const GilReleased released;
    device = device_of(args, options.call);
  });
  if (device.kind == Device::cuda) {
    options.call.device = device;
    return false;
  }
  bool apart = std::ranges::any_of(inputs, [](const Array* x) { return x && interleaved(*x); });
  if constexpr (std::is_same_v<Args, SgemmArgs>) apart = apart && (problem.args.m == 1 || problem.args.n == 1);
  if (!apart && reads_stored(problem.args, options.call.kernel)) return false;
  for (Array* const input : inputs)
    if (input) input->convert();
  return true;
}

template <class Args>
float beta_of(const Args& args) {
  if constexpr (requires { args.beta; }) return args.beta;
  else return 0.0f;
}

template <class Args>
nb::object compute(Problem<Args> problem, const Addend& addend, Target& target, Options& options,
                   CallLocation& location) {
  const float beta = beta_of(problem.args);
  const Array c = checked_addend(problem.function, addend, beta, problem.shape, location);
  if (beta != 0.0f) take_addend(problem, c, target, location);
  set_location(options.call, location);
  problem.for_each_run(target.array(), [&](const Args& args) { call(args, options); });
  return target.finish();
}

// The same with operands of other types; with_problem(visit) calls visit() with the problem of `inputs`, which it sees.
// `target`, if it is there already, is in place of `out`.
template <class With>
nb::object compute_converted(With with_problem, const Addend& addend, nb::handle out, std::array<Array*, 2> inputs,
                             Options& options, CallLocation& location, std::optional<Target> target = {}) {
  const auto compute_it = [&](auto problem) { return compute(std::move(problem), addend, *target, options, location); };
  nb::object result = with_problem([&](auto problem) {
    if (!target)
      target.emplace(problem.function, out, problem.shape, std::initializer_list<const Array*>{inputs[0], inputs[1]},
                     location);
    const bool converted = convert(problem, target->array(), inputs, options, location);
    return converted ? nb::object() : compute_it(std::move(problem));
  });
  return result.is_valid() ? result : with_problem(compute_it);
}

}  // namespace fl::py
