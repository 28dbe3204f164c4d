// The four public functions on Python objects. Signatures and documentation are in python/fastlinalg/_api.py.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::py {

namespace nb = nanobind;

nb::object matmul(nb::handle a, nb::handle b, nb::handle out, const char* precision, const char* device,
                  nb::handle stream);
nb::object sgemm(nb::handle a, nb::handle b, nb::handle c, float alpha, float beta, bool trans_a, bool trans_b,
                 nb::handle out, nb::handle kernel, const char* precision, const char* device, nb::handle stream);
nb::object sgemv(nb::handle a, nb::handle x, nb::handle y, float alpha, float beta, bool trans, nb::handle out,
                 nb::handle kernel, const char* device, nb::handle stream);
nb::object transpose(nb::handle a, nb::handle out, nb::handle kernel, const char* device, nb::handle stream);

}  // namespace fl::py
