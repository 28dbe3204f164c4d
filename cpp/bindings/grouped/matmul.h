// fastlinalg.grouped_matmul.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace fl::py {

namespace nb = nanobind;

nb::object grouped_matmul(nb::handle a, nb::handle b, nb::handle out, nb::handle precision, nb::handle device,
                          nb::handle stream, nb::handle dtype);

// Of tensors, whose gradient torch has recorded (tensor_products.h).
nb::list tensor_products(nb::handle a, nb::handle b, std::string_view precision);

}  // namespace fl::py
