// What only tests and tools ask: the module fastlinalg._core.testing.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::py {

void bind_costs(nanobind::module_& m);  // cost models and their coefficients
void bind_cuts(nanobind::module_& m);   // how calls on host operands are cut up
void bind_rules(nanobind::module_& m);  // what dispatch goes by

}  // namespace fl::py
