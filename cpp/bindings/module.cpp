// The extension module fastlinalg._core.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include <string>
#include <utility>

#include "bindings/arrays/device_array.h"
#include "bindings/arrays/errors.h"
#include "bindings/arrays/long_call.h"
#include "bindings/arrays/numpy_fields.h"
#include "bindings/calls/bind.h"
#include "bindings/calls/logging.h"
#include "core/errors.h"

namespace nb = nanobind;
namespace {

// A product as _api.py calls it: with all arguments, by position. Any object for every one: what is wrong with it is
// said in the library's words. A function of Python's own kind, as calls of nanobind's take 50 ns longer.
template <auto function>
struct Product;
template <class... Handles, nb::object (*function)(Handles...)>
struct Product<function> {
  static PyObject* call(PyObject*, PyObject* const* given, Py_ssize_t count) {
    return fl::py::or_error([&] {
      if (count != Py_ssize_t(sizeof...(Handles)))
        throw fl::InvalidType("got " + std::to_string(count) + " arguments for " + std::to_string(sizeof...(Handles)));
      const auto call = [&]<std::size_t... i>(std::index_sequence<i...>) { return function(nb::handle(given[i])...); };
      return call(std::index_sequence_for<Handles...>()).release().ptr();
    });
  }
};

template <auto function>
PyMethodDef product(const char* name) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(Product<function>::call)), METH_FASTCALL,
          nullptr};
}
PyMethodDef products[] = {product<fl::py::matmul_of_any>("matmul"),
                          product<fl::py::grouped_matmul>("grouped_matmul"),
                          product<fl::py::sgemm>("sgemm"),
                          product<fl::py::ssyrk>("ssyrk"),
                          product<fl::py::sgemv>("sgemv"),
                          product<fl::py::transpose>("transpose"),
                          {}};

}  // namespace

NB_MODULE(_core, m) {
  using nb::arg;
  fl::py::bind_errors(m);
#ifdef NDEBUG
  // A daemon thread may have a plan or an array when the interpreter ends: no fault of it.
  nb::set_leak_warnings(false);
#endif
  fl::py::find_numpy_fields();
  m.attr("__version__") = FASTLINALG_VERSION;

  if (PyModule_AddFunctions(m.ptr(), products) != 0) throw nb::python_error();
  m.def("tensor_product", fl::py::tensor_product, arg("a"), arg("b"), arg("c").none(), arg("out").none(), arg("alpha"),
        arg("beta"), arg("precision"), arg("converts") = false);
  m.def("tensor_rows_product", fl::py::tensor_rows_product, arg("x"), arg("b"), arg("c").none(), arg("trans_b"),
        arg("precision"), arg("converts"));
  m.def("tensor_product_if_faster", fl::py::tensor_product_if_faster, arg("a"), arg("b"), arg("c").none(),
        arg("out").none(), arg("alpha"), arg("beta"), arg("precision"), arg("anywhere"), arg("weights").none());
  m.def("tensor_products", fl::py::tensor_products, arg("a"), arg("b"), arg("precision"));
  // A reference more, which nobody here gives back: for what gives up one that it has not got.
  m.def("add_reference", [](nb::handle object) { object.inc_ref(); }, arg("object").none());
  m.def("set_logger", fl::py::set_logger, arg("logger"));
  m.def("set_progress", fl::py::set_progress, arg("callback").none());
  nb::module_ testing = m.def_submodule("testing", "What only tests and tools ask.");
  fl::py::bind_costs(testing);
  fl::py::bind_cuts(testing);
  fl::py::bind_rules(testing);
  fl::py::bind_device_array(m);
  fl::py::bind_inspection(m);
  fl::py::bind_device_memory(m);
  fl::py::bind_explain(m);
  fl::py::bind_matmul_plan(m);
  fl::py::bind_grouped_plan(m);
  fl::py::bind_tuning(m);
  fl::py::bind_weights(m, testing);
}
