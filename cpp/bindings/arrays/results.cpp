#include "bindings/arrays/results.h"

#include <algorithm>
#include <utility>

#include "bindings/arrays/device_array.h"
#include "bindings/arrays/gil.h"
#include "bindings/arrays/objects.h"
#include "core/errors.h"
#include "core/lazy.h"
#include "device/streams.h"

namespace fl::py {
namespace {

struct AllocationError {
  std::string message = "the library of the operands could not make an array for the result";
  static void set(void* self, const char* kind, const char* message) {
    static_cast<AllocationError*>(self)->message = std::string(kind) + ": " + message;
  }
};

dl::Device device_of(const CallLocation& location) {
  return location.on_device() ? dl::Device{dl::cuda, location.device()} : dl::Device{dl::cpu, 0};
}

// From torch's own allocator, on the stream that is current in torch.
dl::ManagedTensorVersioned* allocate(Shape sizes, const CallLocation& location) {
  dl::Tensor prototype{nullptr, device_of(location), int32_t(sizes.size()), dl::float32, sizes.data(), nullptr, 0};
  dl::ManagedTensorVersioned* tensor = nullptr;
  AllocationError error;
  if (location.library().api->allocate(&prototype, &tensor, &error, AllocationError::set) != 0) {
    PyErr_Clear();
    throw OutOfMemory(error.message);
  }
  return tensor;
}

float* data_of(const dl::Tensor& tensor) {
  return reinterpret_cast<float*>(uintptr_t(tensor.data) + tensor.byte_offset);
}

// Of this shape, in C order, which it is made the owner of.
Array as_result(dl::ManagedTensorVersioned* tensor, const Shape& shape, const CallLocation& location) {
  float* const data = data_of(tensor->tensor);
  void* object = nullptr;
  if (location.library().api->managed_tensor_to_object(tensor, &object) != 0) throw nb::python_error();
  return Array(nb::steal(static_cast<PyObject*>(object)), data, shape, location);
}

bool is_by_table(const CallLocation& location) { return location.library().api && !location.in_operator(); }

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
// A graph that is captured cannot wait for it, and may be started at once.
nb::object new_device_array(const Shape& shape, const CallLocation& location) {
  nb::object result = nb::cast(DeviceArray(shape, location.device()));
  const GilReleased released;
  void* const own = cuda::own_stream(location.device());
  if (location.stream() != own && !cuda::order_after(location.device(), location.stream(), own))
    cuda::wait_for(location.device(), own);
  return result;
}

nb::object new_array(const Shape& shape, const CallLocation& location) {
  if (location.in_operator()) return new_operator_result(shape, location);
  switch (location.library().kind) {
    case Library::torch:
      return location.first().attr("new_empty")(to_tuple(shape),
                                                nb::arg("dtype") = nb::module_::import_("torch").attr("float32"));
    case Library::cupy: return new_cupy_array(shape, location);
    default: return location.on_device() ? new_device_array(shape, location) : empty(shape);
  }
}

}  // namespace

Array new_result(const Shape& shape, CallLocation& location) {
  if (is_by_table(location)) return as_result(allocate(shape, location), shape, location);
  return Array(new_array(shape, location), "out", Array::write, location);
}

// ---------------------------------------------------------------- of lists
struct ListResults::Part {
  dl::ManagedTensorVersioned tensor;
  SharedTensor shared;
  Shape sizes, strides;

  Part(SharedTensor from, float* data, const Array& as, dl::Device device)
      : tensor{dl::version, this, [](auto* done) { delete static_cast<Part*>(done->context); }, 0, {}},
        shared(std::move(from)) {
    for (int i = 0; i < as.ndim(); ++i) sizes.push_back(as.shape(i)), strides.push_back(as.stride(i));
    tensor.tensor = {data, device, int32_t(as.ndim()), dl::float32, sizes.data(), strides.data(), 0};
  }
};

namespace {

// A tensor keeps the allocation from which it comes, so these are no larger than those that torch itself cuts up.
constexpr std::size_t most_shared = (std::size_t(2) << 20) / sizeof(float), most_small = most_shared / 8;

// What it takes of an allocation, where torch would put it; 0 if it gets one of its own.
std::size_t shared_elements(const Shape& shape, const CallLocation& location) {
  if (!is_by_table(location) || !location.on_device()) return 0;
  std::size_t elements = 1;
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(elements, std::size_t(size), &elements) || elements > most_small) return 0;
  return (elements + 127) / 128 * 128;
}

}  // namespace

void ListResults::expect(const Shape& shape, const CallLocation& location) {
  expected_ += shared_elements(shape, location);
}

Array ListResults::make(const Shape& shape, CallLocation& location) {
  const std::size_t elements = shared_elements(shape, location);
  if (elements == 0 || (!shared_ && elements == expected_)) return new_result(shape, location);
  if (used_ + elements > room_) {
    used_ = 0, room_ = std::max(std::min(expected_, most_shared), elements);
    shared_ = {allocate({int64_t(room_)}, location), [](auto* done) {
                 if (done->deleter) done->deleter(done);
               }};
  }
  float* const data = data_of(shared_->tensor) + used_;
  used_ += elements, expected_ -= elements;
  auto part = std::make_unique<Part>(shared_, data, Array(data, shape), device_of(location));
  return as_result(&part.release()->tensor, shape, location);
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
