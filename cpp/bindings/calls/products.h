// The public functions on Python objects. Signatures and documentation are in python/fastlinalg/_api.py.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::py {

namespace nb = nanobind;

nb::object matmul(nb::handle a, nb::handle b, nb::handle out, nb::handle precision, nb::handle device,
                  nb::handle stream, nb::handle dtype);
nb::object sgemm(nb::handle a, nb::handle b, nb::handle c, nb::handle alpha, nb::handle beta, nb::handle trans_a,
                 nb::handle trans_b, nb::handle out, nb::handle kernel, nb::handle precision, nb::handle device,
                 nb::handle stream, nb::handle dtype);
nb::object ssyrk(nb::handle a, nb::handle c, nb::handle alpha, nb::handle beta, nb::handle trans, nb::handle uplo,
                 nb::handle out, nb::handle kernel, nb::handle precision, nb::handle device, nb::handle stream,
                 nb::handle dtype);
nb::object sgemv(nb::handle a, nb::handle x, nb::handle y, nb::handle alpha, nb::handle beta, nb::handle trans,
                 nb::handle out, nb::handle kernel, nb::handle device, nb::handle stream, nb::handle dtype);
nb::object transpose(nb::handle a, nb::handle out, nb::handle kernel, nb::handle device, nb::handle stream,
                     nb::handle dtype);

}  // namespace fl::py
