// matmul of matrices in parts: a list of arrays on CUDA devices is the matrix of their rows, one array below the other.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::py {

namespace nb = nanobind;

// calls/products.h's matmul, but for operands of which one is a list or a tuple, empty or of arrays. For each array of
// `a` its rows of the result are computed on its device, which gets a copy of the rows of `b` that it has not. The
// result is a list if `a` is one.
nb::object matmul_of_any(nb::handle a, nb::handle b, nb::handle out, nb::handle precision, nb::handle device,
                         nb::handle stream, nb::handle dtype);

}  // namespace fl::py
