// Cost models and their coefficients, for tools/fit_costs and tests.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::py {

void bind_costs(nanobind::module_& m);

}  // namespace fl::py
