// What the library is and what it found: for fl.info(), fl.devices(), fl.kernels(), fl.cuda.*.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::py {

void bind_inspection(nanobind::module_& m);
void bind_explain(nanobind::module_& m);  // for fl.explain()

}  // namespace fl::py
