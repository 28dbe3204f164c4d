#include "bindings/arrays/numpy_fields.h"

#include <algorithm>
#include <atomic>

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

// Of each there is one. Null if the fields are not as expected.
PyObject* float32_dtype = nullptr;
PyObject* float16_dtype = nullptr;
std::atomic<PyObject*> bfloat16_dtype = nullptr;

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
  if (!agree(view, dtype)) return;
  float32_dtype = dtype.release().ptr();
  float16_dtype = nb::object(np.attr("dtype")(np.attr("float16"))).release().ptr();
}

const NumpyFields* numpy_fields(nb::handle ndarray) {
  const NumpyFields* const fields = fields_of(ndarray);
  return float32_dtype && fields->dtype == float32_dtype ? fields : nullptr;
}

const NumpyFields* numpy_fields_of_16_bits(nb::handle ndarray, Element& element) {
  if (!float32_dtype) return nullptr;
  const NumpyFields* const fields = fields_of(ndarray);
  const bool half = fields->dtype == float16_dtype;
  if (!half && fields->dtype != bfloat16_dtype.load(std::memory_order_relaxed)) return nullptr;
  element = half ? Element::float16 : Element::bfloat16;
  return fields;
}

void remember_bfloat16(nb::handle dtype) {
  PyObject* none = nullptr;
  if (bfloat16_dtype.compare_exchange_strong(none, dtype.ptr())) dtype.inc_ref();  // nobody gives it back
}

}  // namespace fl::py
