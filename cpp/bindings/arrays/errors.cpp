#include "bindings/arrays/errors.h"

#include <string>

#include "core/errors.h"

namespace fl::py {
namespace {

PyObject* cuda_error_type = nullptr;

void set_cuda_error(const CudaError& error) {
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

// Others pass.
void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const UnknownKernel& error) {
    set_error(PyExc_ValueError, std::string(error.what()) + " (fastlinalg.kernels('" + error.op + "') lists all)");
  } catch (const InvalidValue& error) {
    set_error(PyExc_ValueError, error.what());
  } catch (const InvalidType& error) {
    set_error(PyExc_TypeError, error.what());
  } catch (const OutOfMemory& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const CudaError& error) {
    set_cuda_error(error);
  }
}

}  // namespace

void set_python_error(const std::exception_ptr& error) {
  try {
    translate(error, nullptr);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& other) {
    set_error(PyExc_RuntimeError, other.what());
  }
}

void bind_errors(nb::module_& m) {
  nb::register_exception_translator(translate);
  if (!cuda_error_type)
    cuda_error_type = PyErr_NewExceptionWithDoc("fastlinalg.CudaError",
                                                "A CUDA call failed, or no CUDA device can be used.\n\n"
                                                "Attributes\n----------\ncode : int\n    The cudaError_t.\n"
                                                "name : str\n    Its name, for example ``cudaErrorNoDevice``.",
                                                PyExc_RuntimeError, nullptr);
  m.attr("CudaError") = nb::borrow(cuda_error_type);
}

}  // namespace fl::py
