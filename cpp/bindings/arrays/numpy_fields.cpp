#include "bindings/arrays/numpy_fields.h"

#include <algorithm>

namespace fl::py {
namespace {

namespace nb = nanobind;

const NumpyFields* fields_of(nb::handle ndarray) { return reinterpret_cast<const NumpyFields*>(ndarray.ptr()); }

bool agree(nb::handle view, nb::handle dtype) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(view.ptr(), &buffer, PyBUF_STRIDES) != 0) {
    PyErr_Clear();
    return false;
  }
  const NumpyFields& x = *fields_of(view);
  // In this order: the pointers behind are followed only if what lies around them is where it should be.
  const bool same = x.data == buffer.buf && x.ndim == buffer.ndim && x.dtype == dtype.ptr() &&
                    x.writeable() == !buffer.readonly && std::equal(x.shape, x.shape + x.ndim, buffer.shape) &&
                    std::equal(x.strides, x.strides + x.ndim, buffer.strides);
  PyBuffer_Release(&buffer);
  return same;
}

PyObject* float32_dtype = nullptr;  // of which there is one; null if the fields are not as expected

}  // namespace

void find_numpy_fields() {
  nb::object np;
  try {
    np = nb::module_::import_("numpy");
  } catch (const nb::python_error&) {
    return;  // the type stubs are made without it
  }
  nb::object dtype = np.attr("dtype")(np.attr("float32"));
  const nb::object whole = np.attr("empty")(nb::make_tuple(5, 7), dtype);
  const nb::object view = whole[nb::make_tuple(nb::slice(1, 5, 2), nb::slice(0, 7, 3))];
  if (!agree(whole, dtype) || !agree(view, dtype)) return;
  view.attr("setflags")(nb::arg("write") = false);
  if (agree(view, dtype)) float32_dtype = dtype.release().ptr();
}

const NumpyFields* numpy_fields(nb::handle ndarray) {
  const NumpyFields* const fields = fields_of(ndarray);
  return float32_dtype && fields->dtype == float32_dtype ? fields : nullptr;
}

}  // namespace fl::py
