// The four public functions on Python objects. Signatures and documentation are in python/fastlinalg/_api.py.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace fl::py {

namespace nb = nanobind;

nb::object matmul(nb::handle a, nb::handle b, nb::handle out, std::string_view precision, std::string_view device,
                  nb::handle stream);
nb::object sgemm(nb::handle a, nb::handle b, nb::handle c, double alpha, double beta, nb::handle trans_a,
                 nb::handle trans_b, nb::handle out, nb::handle kernel, std::string_view precision,
                 std::string_view device, nb::handle stream);
nb::object sgemv(nb::handle a, nb::handle x, nb::handle y, double alpha, double beta, nb::handle trans, nb::handle out,
                 nb::handle kernel, std::string_view device, nb::handle stream);
nb::object transpose(nb::handle a, nb::handle out, nb::handle kernel, std::string_view device, nb::handle stream);

}  // namespace fl::py
