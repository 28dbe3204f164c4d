// The extension module fastlinalg._core.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include <cstring>

#include "bindings/arrays/device_array.h"
#include "bindings/arrays/numpy_fields.h"
#include "bindings/calls/device_memory.h"
#include "bindings/calls/inspect.h"
#include "bindings/calls/logging.h"
#include "bindings/calls/matmul_plan.h"
#include "bindings/calls/products.h"
#include "bindings/calls/tune.h"
#include "bindings/operators/tensor_products.h"
#include "bindings/operators/weights.h"
#include "bindings/sharded/matmul.h"
#include "bindings/testing/testing.h"
#include "core/errors.h"

namespace {

namespace nb = nanobind;

PyObject* cuda_error_type = nullptr;

void set_cuda_error(const fl::CudaError& error) {
  nb::object exception = nb::handle(cuda_error_type)(error.what());
  exception.attr("code") = error.code;
  exception.attr("name") = error.name.c_str();
  PyErr_SetObject(cuda_error_type, exception.ptr());
}

// A message may quote what came from the environment, which has any bytes.
void set_error(PyObject* type, const std::string& message) {
  PyObject* const text = PyUnicode_DecodeUTF8(message.data(), Py_ssize_t(message.size()), "replace");
  if (!text) return;  // and that is the error
  PyErr_SetObject(type, text);
  Py_DECREF(text);
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const fl::UnknownKernel& error) {
    set_error(PyExc_ValueError, std::string(error.what()) + " (fastlinalg.kernels('" + error.op + "') lists all)");
  } catch (const fl::InvalidValue& error) {
    set_error(PyExc_ValueError, error.what());
  } catch (const fl::InvalidType& error) {
    set_error(PyExc_TypeError, error.what());
  } catch (const fl::OutOfMemory& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const fl::CudaError& error) {
    set_cuda_error(error);
  }
}

}  // namespace

NB_MODULE(_core, m) {
  using nb::arg;
  nb::register_exception_translator(translate);
#ifdef NDEBUG
  // A daemon thread may have a plan or an array when the interpreter ends: no fault of it.
  nb::set_leak_warnings(false);
#endif
  if (!cuda_error_type)
    cuda_error_type = PyErr_NewExceptionWithDoc("fastlinalg.CudaError",
                                                "A CUDA call failed, or no CUDA device can be used.\n\n"
                                                "Attributes\n----------\ncode : int\n    The cudaError_t.\n"
                                                "name : str\n    Its name, for example ``cudaErrorNoDevice``.",
                                                PyExc_RuntimeError, nullptr);
  fl::py::find_numpy_fields();
  m.attr("__version__") = FASTLINALG_VERSION;
  m.attr("CudaError") = nb::borrow(cuda_error_type);

  // Any object for every argument: what is wrong with it is said in the library's words.
  const auto any = [](const char* name) { return arg(name).none(); };
  m.def("matmul", fl::py::matmul_of_any, any("a"), any("b"), any("out"), any("precision"), any("device"), any("stream"),
        any("dtype"));
  m.def("sgemm", fl::py::sgemm, any("a"), any("b"), any("c"), any("alpha"), any("beta"), any("trans_a"), any("trans_b"),
        any("out"), any("kernel"), any("precision"), any("device"), any("stream"), any("dtype"));
  m.def("ssyrk", fl::py::ssyrk, any("a"), any("c"), any("alpha"), any("beta"), any("trans"), any("uplo"), any("out"),
        any("kernel"), any("precision"), any("device"), any("stream"), any("dtype"));
  m.def("sgemv", fl::py::sgemv, any("a"), any("x"), any("y"), any("alpha"), any("beta"), any("trans"), any("out"),
        any("kernel"), any("device"), any("stream"), any("dtype"));
  m.def("transpose", fl::py::transpose, any("a"), any("out"), any("kernel"), any("device"), any("stream"),
        any("dtype"));
  m.def("tensor_product", fl::py::tensor_product, arg("a"), arg("b"), arg("c").none(), arg("out").none(), arg("alpha"),
        arg("beta"), arg("precision"));
  m.def("tensor_product_if_faster", fl::py::tensor_product_if_faster, arg("a"), arg("b"), arg("c").none(),
        arg("out").none(), arg("alpha"), arg("beta"), arg("precision"), arg("anywhere"), arg("weights").none());
  // A reference more, which nobody here gives back: for what gives up one that it has not got.
  m.def("add_reference", [](nb::handle object) { object.inc_ref(); }, arg("object").none());
  m.def("set_logger", fl::py::set_logger, arg("logger"));
  nb::module_ testing = m.def_submodule("testing", "What only tests and tools ask.");
  fl::py::bind_costs(testing);
  fl::py::bind_cuts(testing);
  fl::py::bind_rules(testing);
  fl::py::bind_device_array(m);
  fl::py::bind_inspection(m);
  fl::py::bind_device_memory(m);
  fl::py::bind_explain(m);
  fl::py::bind_matmul_plan(m);
  fl::py::bind_tuning(m);
  fl::py::bind_weights(m, testing);
}
