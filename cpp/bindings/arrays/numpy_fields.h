// The fields of numpy.ndarray, read where they lie. They are part of NumPy's binary interface, the same since 1.0.
//
// An array asked through the buffer protocol describes itself anew each time, in memory that it allocates: 85 ns, and
// three operands took half the time of a call on an 8x8 product.
#pragma once

#include <nanobind/nanobind.h>

#include "core/element.h"

namespace fl::py {

struct NumpyFields {
  PyObject_HEAD char* data;
  int ndim;
  Py_ssize_t *shape, *strides;  // strides in bytes
  PyObject *base, *dtype;
  int flags;

  bool writeable() const { return flags & 0x400; }
  bool warns_on_write() const { return flags < 0; }  // what np.broadcast_to makes: the buffer protocol knows the rules
};

// When the module is loaded: looks whether a probe's fields are what the buffer protocol says.
void find_numpy_fields();
// Null if they were not, or if the object, which has to be an ndarray of the type itself, does not hold float32 in the
// machine's byte order.
const NumpyFields* numpy_fields(nanobind::handle ndarray);
// The same of one that holds float16, or bfloat16 once remember_bfloat16() was told its dtype.
const NumpyFields* numpy_fields_of_16_bits(nanobind::handle ndarray, Element& element);
void remember_bfloat16(nanobind::handle dtype);

}  // namespace fl::py
