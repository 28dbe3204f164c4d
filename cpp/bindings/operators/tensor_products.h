// Products of torch tensors inside torch's operators (fastlinalg.torch), where gradients are recorded already.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace fl::py {

namespace nb = nanobind;

// alpha * a @ b + beta * c for matrices, stacks of them, or a matrix and a vector. `c` may be broadcast; `c` and `out`
// may be None. `converts`: other real types than float32 are taken, as with `dtype=np.float32`.
nb::object tensor_product(nb::handle a, nb::handle b, nb::handle c, nb::handle out, nb::handle alpha, nb::handle beta,
                          std::string_view precision, bool converts);

// x @ b of a matrix b, or of its transpose, for all rows of `x` at once: the result has the other dimensions of `x`.
// `c`, or None, is added to each.
nb::object tensor_rows_product(nb::handle x, nb::handle b, nb::handle c, bool trans_b, std::string_view precision,
                               bool converts);

// tensor_product() if it is for fastlinalg: what torch's own operators would refuse or convert is not, nor what they
// would compute faster. Otherwise a string that says why not, and nothing has happened. `anywhere`: on the CPU too, and
// whatever the estimates say. `weights`: operands whose splits stay (weights.h), or None.
nb::object tensor_product_if_faster(nb::handle a, nb::handle b, nb::handle c, nb::handle out, nb::handle alpha,
                                    nb::handle beta, std::string_view precision, bool anywhere, nb::handle weights);

}  // namespace fl::py
