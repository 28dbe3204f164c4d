#include "bindings/arrays/results.h"

#include "bindings/arrays/device_array.h"
#include "bindings/arrays/gil.h"
#include "bindings/arrays/names.h"
#include "core/errors.h"
#include "core/lazy.h"
#include "device/device_memory.h"
#include "device/streams.h"

namespace fl::py {
namespace {

struct AllocationError {
  std::string message = "the library of the operands could not make an array for the result";
  static void set(void* self, const char* kind, const char* message) {
    static_cast<AllocationError*>(self)->message = std::string(kind) + ": " + message;
  }
};

// A tensor from torch's own allocator, on the stream that is current in torch.
nb::object new_tensor(const Shape& shape, const CallLocation& location) {
  const dl::ExchangeApi& api = *location.library().api;
  Shape sizes = shape;
  const dl::Device device = location.on_device() ? dl::Device{dl::cuda, location.device()} : dl::Device{dl::cpu, 0};
  dl::Tensor prototype{nullptr, device, int32_t(sizes.size()), dl::float32, sizes.data(), nullptr, 0};
  dl::ManagedTensorVersioned* tensor = nullptr;
  AllocationError error;
  if (api.allocate(&prototype, &tensor, &error, AllocationError::set) != 0) {
    PyErr_Clear();
    throw OutOfMemory(error.message);
  }
  void* object = nullptr;
  if (api.managed_tensor_to_object(tensor, &object) != 0) throw nb::python_error();
  return nb::steal(static_cast<PyObject*>(object));
}

// Inside an operator a tensor like those that torch's own make: the others own their memory through DLPack, and torch
// can neither resize that nor keep it for another stream (`record_stream`).
nb::object new_operator_result(const Shape& shape, const CallLocation& location) {
  struct Functions {
    nb::object empty, float32, keywords = nb::make_tuple("dtype", "device");
    Functions() {
      const nb::module_ torch = nb::module_::import_("torch");
      empty = torch.attr("empty"), float32 = torch.attr("float32");
    }
  };
  static constinit Lazy<Functions> functions;
  const Functions& known = functions.get([] { return Functions(); });
  const nb::object sizes = to_tuple(shape), device = attribute(location.first(), names().device);
  PyObject* arguments[] = {sizes.ptr(), known.float32.ptr(), device.ptr()};
  PyObject* const result = PyObject_Vectorcall(known.empty.ptr(), arguments, 1, known.keywords.ptr());
  if (!result) throw nb::python_error();
  return nb::steal(result);
}

// CuPy allocates on the current device.
nb::object new_cupy_array(const Shape& shape, const CallLocation& location) {
  const nb::object cupy = nb::steal(PyImport_GetModule(nb::str("cupy").ptr()));
  const nb::object empty = cupy.attr("empty"), cuda = cupy.attr("cuda");
  if (nb::cast<int>(cuda.attr("runtime").attr("getDevice")()) == location.device())
    return empty(to_tuple(shape), "float32");
  const nb::object device = cuda.attr("Device")(location.device());
  device.attr("__enter__")();
  PyObject* const result = PyObject_CallFunction(empty.ptr(), "Os", to_tuple(shape).ptr(), "float32");
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  device.attr("__exit__")(nb::none(), nb::none(), nb::none());
  PyErr_Restore(type, value, trace);
  if (!result) throw nb::python_error();
  return nb::steal(result);
}

// The memory is there in the order of the library's own stream. The call's stream may have waited for that one already,
// for an operand: what has come to it since, such as a wait for whoever had this memory before, is waited for as well.
nb::object new_device_array(const Shape& shape, const CallLocation& location) {
  nb::object result = nb::cast(DeviceArray(shape, location.device()));
  const GilReleased released;
  void* const own = cuda::own_stream(location.device());
  if (location.stream() != own) cuda::order_after(location.device(), location.stream(), own);
  return result;
}

}  // namespace

nb::object new_result(const Shape& shape, const CallLocation& location) {
  const Library& library = location.library();
  if (location.in_operator()) return new_operator_result(shape, location);
  if (library.kind == Library::torch && library.api) return new_tensor(shape, location);
  if (library.kind == Library::torch)
    return location.first().attr("new_empty")(to_tuple(shape),
                                              nb::arg("dtype") = nb::module_::import_("torch").attr("float32"));
  if (library.kind == Library::cupy) return new_cupy_array(shape, location);
  return location.on_device() ? new_device_array(shape, location) : empty(shape);
}

// The array API standard gives an array's library without its name.
nb::object as_callers_own(nb::object result, const CallLocation& location) {
  if (location.library().kind != Library::dlpack || !nb::hasattr(location.first(), "__array_namespace__"))
    return result;
  const nb::object library = location.first().attr("__array_namespace__")();
  const nb::object convert = nb::getattr(library, "from_dlpack", nb::none());
  return convert.is_none() ? result : nb::object(convert(result));
}

}  // namespace fl::py
