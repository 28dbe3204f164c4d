// What the files of the module add to it.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace fl::py {

namespace nb = nanobind;

// ---------------------------------------------------------------- public functions
// On Python objects. Signatures and documentation are in python/fastlinalg/_api.py.
nb::object matmul(nb::handle a, nb::handle b, nb::handle out, nb::handle precision, nb::handle device,
                  nb::handle stream, nb::handle dtype);
// The same, but for operands of which one is a list or a tuple, empty or of arrays: a matrix in parts, which is the
// matrix of their rows, one array below the other. For each array of `a` its rows of the result are computed on its
// device, which gets a copy of the rows of `b` that it has not. The result is a list if `a` is one.
nb::object matmul_of_any(nb::handle a, nb::handle b, nb::handle out, nb::handle precision, nb::handle device,
                         nb::handle stream, nb::handle dtype);
nb::object grouped_matmul(nb::handle a, nb::handle b, nb::handle out, nb::handle precision, nb::handle device,
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

// ---------------------------------------------------------------- torch's operators
// Products of torch tensors inside torch's operators (fastlinalg.torch), where gradients are recorded already.
//
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
nb::list tensor_products(nb::handle a, nb::handle b, std::string_view precision);  // grouped_matmul() of tensors

// ---------------------------------------------------------------- the rest
void bind_device_memory(nb::module_& m);                  // memory and times for benchmarks and GPU tests
void bind_explain(nb::module_& m);                        // for fl.explain()
void bind_grouped_plan(nb::module_& m);                   // for fl.GroupedMatmul
void bind_inspection(nb::module_& m);                     // for fl.info(), fl.devices(), fl.kernels(), fl.cuda.*
void bind_matmul_plan(nb::module_& m);                    // for fl.Matmul
void bind_tuning(nb::module_& m);                         // corrections of the cost rules
void bind_weights(nb::module_& m, nb::module_& testing);  // for fastlinalg.torch.use(keep_weights=)
// Of fastlinalg._core.testing, what only tests and tools ask:
void bind_costs(nb::module_& m);  // cost models and their coefficients
void bind_cuts(nb::module_& m);   // how calls on host operands are cut up
void bind_rules(nb::module_& m);  // what dispatch goes by

// Before anything is dispatched: reads the user's tuning table, once in a process. What is wrong with it goes to the
// log.
void ensure_tuned();

}  // namespace fl::py
