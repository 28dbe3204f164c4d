// Kernels on raw device memory, and their timing: what the benchmarks and the GPU tests need. Private to the package.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::py {

void bind_device_memory(nanobind::module_& m);

}  // namespace fl::py
