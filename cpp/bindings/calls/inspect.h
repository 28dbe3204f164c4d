// What the library is and what it found: for fl.info(), fl.devices(), fl.kernels(), fl.cuda.*; and what it would do.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::py {

void bind_inspection(nanobind::module_& m);
void bind_explain(nanobind::module_& m);  // for fl.explain()
void bind_costs(nanobind::module_& m);    // cost models and their coefficients, for tools/fit_costs and tests

}  // namespace fl::py
