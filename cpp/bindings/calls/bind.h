// What the files of the module add to it.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::py {

void bind_device_memory(nanobind::module_& m);  // memory and times for benchmarks and GPU tests
void bind_explain(nanobind::module_& m);        // for fl.explain()
void bind_inspection(nanobind::module_& m);     // for fl.info(), fl.devices(), fl.kernels(), fl.cuda.*
// Of fastlinalg._core.testing, what only tests and tools ask:
void bind_costs(nanobind::module_& m);  // cost models and their coefficients
void bind_cuts(nanobind::module_& m);   // how calls on host operands are cut up
void bind_rules(nanobind::module_& m);  // what dispatch goes by

}  // namespace fl::py
