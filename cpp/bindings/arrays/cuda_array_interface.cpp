// Reading __cuda_array_interface__ (versions 2 and 3), which numba and PyCUDA offer: a dictionary about the array.
#include <string>

#include "bindings/arrays/array.h"
#include "bindings/arrays/call_location.h"
#include "core/errors.h"
#include "device/device_info.h"
#include "device/device_memory.h"

namespace fl::py {
namespace {

[[noreturn]] void malformed(const char* name, const std::string& what) {
  throw InvalidType(std::string(name) + ".__cuda_array_interface__ " + what);
}

nb::object item(nb::handle dict, const char* key) {
  PyObject* const value = PyDict_GetItemString(dict.ptr(), key);
  return value ? nb::borrow(value) : nb::none();
}

template <class Integer>
Integer integer(nb::handle value, const char* name, const char* key) {
  Integer result = 0;
  if (!nb::try_cast(value, result))
    malformed(name, std::string("has ") + shown(value) + " in '" + key + "', where an integer has to be");
  return result;
}

// A tuple of integers.
Shape integers(nb::handle values, const char* name, const char* key) {
  Shape list;
  if (!PyTuple_Check(values.ptr())) malformed(name, std::string("has no tuple '") + key + "'");
  for (nb::handle value : nb::borrow<nb::tuple>(values)) list.push_back(integer<int64_t>(value, name, key));
  if (list.size() > size_t(max_dims)) malformed(name, "has more than " + std::to_string(max_dims) + " dimensions");
  return list;
}

// The interface has bytes, everything else here elements.
Shape element_strides(nb::handle strides, const Shape& shape, int64_t element, const char* name) {
  Shape list = integers(strides, name, "strides");
  if (list.size() != shape.size()) malformed(name, "has as many strides as dimensions only in 'shape'");
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] % element != 0 && shape[i] > 1) refuse_misaligned(name, element);
    list[i] /= element;
  }
  return list;
}

int device_of(const void* data, bool empty, const CallLocation& location, const char* name) {
  if (!data && empty) return location.on_device() ? location.device() : 0;  // nothing is there to ask about
  const int device = cuda::device_of(data);
  if (device < 0 && cuda::device_count() > 0)
    throw InvalidValue(std::string(name) + ".__cuda_array_interface__ points to memory that no CUDA device can reach");
  return device < 0 ? 0 : device;  // the error is then that there is no device
}

}  // namespace

void Array::acquire_interface(nb::handle object, const char* name, Access access, CallLocation& location) {
  const nb::object dict = object.attr("__cuda_array_interface__");
  if (!PyDict_Check(dict.ptr())) malformed(name, "is no dictionary");
  const std::string type = text(item(dict, "typestr"));
  const dl::DataType dtype = type == "<f4" || type == "=f4"   ? dl::float32
                             : type == "<f2" || type == "=f2" ? dl::float16
                                                              : dl::DataType{dl::opaque, 0, 0};
  if (!takes(dtype, access, location))
    return acquire_converted(object, name, "'" + type + "'", ".astype('float32')", access, location);
  if (!item(dict, "mask").is_none())
    malformed(name, "has a mask: the masked elements would be used; pass a plain array");

  Shape shape = integers(item(dict, "shape"), name, "shape"), strides;
  const nb::object given = item(dict, "strides");
  if (!given.is_none()) strides = element_strides(given, shape, dtype.bits / 8, name);
  const nb::object data = item(dict, "data");
  if (!PyTuple_Check(data.ptr()) || PyTuple_Size(data.ptr()) != 2) malformed(name, "has no 'data' pair");
  if (access == write && nb::cast<bool>(nb::bool_(data[1]))) throw InvalidValue(std::string(name) + " is read-only");
  void* const pointer = reinterpret_cast<void*>(integer<uintptr_t>(nb::object(data[0]), name, "data"));

  set({pointer, {}, int32_t(shape.size()), dtype, shape.data(), strides.empty() ? nullptr : strides.data(), 0}, name);
  bool empty = false;
  for (int64_t size : shape) empty = empty || size == 0;
  device_ = device_of(pointer, empty, location, name);
  if (cuda::device_count() == 0) cuda::require_device(device_);
  join(name, location);
  const nb::object stream = item(dict, "stream");
  if (stream.is_none()) return location.keep(object_);
  const auto handle = integer<uintptr_t>(stream, name, "stream");
  if (handle == 0)
    malformed(name, "has stream 0, which is ambiguous: 1 is the legacy default stream, 2 the per-thread one");
  location.wait_for(reinterpret_cast<void*>(handle));
  location.keep(object_);
}

}  // namespace fl::py
