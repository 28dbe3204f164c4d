// A checked problem with its addend and its target: where every public function ends.
#pragma once

#include "bindings/calls/call.h"
#include "bindings/calls/problems.h"

namespace fl::py {

// Loads what beta multiplies into the target.
inline void preload(const char* function, const Addend& addend, float beta, const Shape& shape, Target& target,
                    CallLocation& location) {
  const Array c = checked_addend(function, addend, beta, shape, location);
  if (beta != 0.0f) target.preload(c);
}

template <class Args>
float beta_of(const Args& args) {
  if constexpr (requires { args.beta; }) return args.beta;
  else return 0.0f;
}

template <class Args>
nb::object compute(Problem<Args> problem, const Addend& addend, nb::handle out,
                   std::initializer_list<const Array*> inputs, Options& options, CallLocation& location) {
  Target target(problem.function, out, problem.shape, inputs, location);
  preload(problem.function, addend, beta_of(problem.args), problem.shape, target, location);
  set_location(options.call, location);
  problem.for_each_run(target.array(), [&](const Args& args) { call(args, options); });
  return target.finish();
}

}  // namespace fl::py
