#include "bindings/arrays/device_array.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <utility>

#include "bindings/arrays/errors.h"
#include "bindings/arrays/gil.h"
#include "bindings/arrays/objects.h"
#include "core/call_device.h"
#include "core/errors.h"
#include "device/device_memory.h"
#include "device/streams.h"

namespace fl::py {
namespace {

int64_t elements(const DeviceArray& x) {
  int64_t count = 1;
  for (int64_t size : x.shape) count *= size;
  return count;
}
size_t bytes(const DeviceArray& x) { return size_t(elements(x)) * sizeof(float); }

// Broadcast operands can ask for a result whose bytes no integer counts.
void refuse_uncountable(const Shape& shape) {
  double floats = 1;
  for (int64_t size : shape) floats *= double(size);
  if (floats > double(int64_t(1) << 60))
    throw OutOfMemory("a result of shape " + to_string(shape) + " does not fit in device memory");
}

Shape strides(const DeviceArray& x) {
  Shape list(x.shape.size());
  int64_t stride = 1;
  for (size_t i = list.size(); i-- > 0; stride *= x.shape[i]) list[i] = stride;
  return list;
}

std::string where(const DeviceArray& x) { return "cuda:" + std::to_string(x.device); }

std::string repr(const DeviceArray& x) {
  return "fastlinalg.DeviceArray(shape=" + to_string(x.shape) + ", dtype=float32, device='" + where(x) + "')";
}

// ---------------------------------------------------------------- to and from NumPy
DeviceArray from_numpy(nb::handle array, nb::handle device) {
  refuse_own_meaning(array, "array");  // asarray drops it
  if (array.is_none() || PyList_Check(array.ptr()) || PyTuple_Check(array.ptr()) || PyUnicode_Check(array.ptr()))
    not_an_array(array, "array");  // NumPy makes float64 or text of it
  if (!PyUnicode_Check(device.ptr())) throw InvalidType(std::string(device_values) + ", got " + shown(device));
  const Array source(nb::module_::import_("numpy").attr("asarray")(array, nb::arg("order") = "C"), "array",
                     Array::read);
  const Device where = parse_device(text(device));
  if (where.kind == Device::cpu || where.set)
    throw InvalidValue("a DeviceArray lies on one CUDA device, got device=" + shown(device));
  DeviceArray x({source.shape().begin(), source.shape().end()}, where.ordinal);
  const GilReleased released;
  cuda::copy(x.device, x.memory.get(), source.data(), bytes(x));
  return x;
}

nb::object to_numpy(const DeviceArray& x) {
  nb::object result = empty(x.shape);
  const Array target(result, "result", Array::write);
  const GilReleased released;
  cuda::copy(x.device, target.data(), x.memory.get(), bytes(x));
  return result;
}

void refuse_construction(DeviceArray*, const nb::args&, const nb::kwargs&) {
  throw InvalidType("a DeviceArray is made of an array: DeviceArray.from_numpy(array, device='cuda')");
}

void refuse_pickling(const DeviceArray& x) {
  throw InvalidType(
      "a DeviceArray lies in memory of " + where(x) +
      " that belongs to this process, and can be neither pickled nor copied so; send x.numpy(), and make " +
      "another of it with DeviceArray.from_numpy");
}

void refuse_implicit_copy(const DeviceArray&, const nb::args&, const nb::kwargs&) {
  throw InvalidType("a DeviceArray is not copied to host memory implicitly; use .numpy()");
}

// ---------------------------------------------------------------- DLPack
template <class Managed>
struct Export {
  Managed managed{};
  std::shared_ptr<void> memory;
  Shape shape, strides;

  explicit Export(const DeviceArray& x) : memory(x.memory), shape(x.shape), strides(py::strides(x)) {
    managed.tensor = {
        memory.get(), {dl::cuda, x.device}, int32_t(shape.size()), dl::float32, shape.data(), strides.data(), 0};
    managed.context = this;
    managed.deleter = [](Managed* self) { delete static_cast<Export*>(self->context); };
  }
};

template <class Managed>
nb::object capsule(Export<Managed>* exported, const char* name, void (*unused)(PyObject*)) {
  PyObject* const result = PyCapsule_New(&exported->managed, name, unused);
  if (result) return nb::steal(result);
  delete exported;
  throw nb::python_error();
}

// Frees what no consumer has taken over: one that has, has renamed the capsule.
template <class Managed>
void free_unused(PyObject* object, const char* name) {
  if (!PyCapsule_IsValid(object, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(object, name));
  managed->deleter(managed);
}

void make_consumer_wait(const DeviceArray& x, const std::optional<int64_t>& stream) {
  if (stream == -1) return;
  if (stream && (*stream == 0 || *stream < -1))
    throw InvalidValue("stream=" + std::to_string(*stream) +
                       " is no CUDA stream: 1 is the legacy default stream, 2 the per-thread one, -1 means no waiting");
  void* const consumer = reinterpret_cast<void*>(stream.value_or(1));  // the meaning of None for CUDA
  const GilReleased released;
  if (void* const own = cuda::own_stream(x.device); consumer != own) cuda::order_after(x.device, consumer, own);
}

nb::object to_dlpack(const DeviceArray& x, const std::optional<int64_t>& stream,
                     const std::optional<std::pair<int, int>>& max_version,
                     const std::optional<std::pair<int, int>>& dl_device, const std::optional<bool>& copy) {
  if (dl_device && *dl_device != std::pair<int, int>(dl::cuda, x.device))
    throw nb::buffer_error(("the array is on " + where(x) + " and is exported from there only").c_str());
  if (copy.value_or(false)) throw nb::buffer_error("a DeviceArray is exported without a copy only");
  make_consumer_wait(x, stream);
  if (max_version && max_version->first >= 1) {
    auto* exported = new Export<dl::ManagedTensorVersioned>(x);
    exported->managed.version = dl::version;
    return capsule(exported, dl::capsule_versioned,
                   [](PyObject* object) { free_unused<dl::ManagedTensorVersioned>(object, dl::capsule_versioned); });
  }
  return capsule(new Export<dl::ManagedTensor>(x), dl::capsule,
                 [](PyObject* object) { free_unused<dl::ManagedTensor>(object, dl::capsule); });
}

nb::dict cuda_array_interface(const DeviceArray& x) {
  return dict_of({{"shape", to_tuple(x.shape)},
                  {"typestr", "<f4"},
                  {"data", nb::make_tuple(reinterpret_cast<uintptr_t>(x.memory.get()), false)},
                  {"strides", nb::none()},
                  {"version", 3},
                  {"stream", reinterpret_cast<uintptr_t>(cuda::own_stream(x.device))}});
}

int64_t length(const DeviceArray& x) {
  if (x.shape.empty()) throw InvalidType("len() of a 0-d array");
  return x.shape[0];
}

// ---------------------------------------------------------------- methods of Python's own kind
PyObject* call_from_numpy(PyObject*, PyObject* arguments, PyObject* keywords) {
  return or_error([&]() -> PyObject* {
    static constexpr const char* names[] = {"array", "device", nullptr};
    PyObject *array, *device = nullptr;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:from_numpy", const_cast<char**>(names), &array, &device))
      return nullptr;
    return nb::cast(from_numpy(array, device ? nb::borrow(device) : nb::object(nb::str("cuda")))).release().ptr();
  });
}

PyObject* call_numpy(PyObject* self, PyObject*) {
  return or_error([&] {
    if (!nb::inst_ready(self)) throw InvalidType("a DeviceArray without memory; use DeviceArray.from_numpy");
    return to_numpy(*nb::inst_ptr<DeviceArray>(self)).release().ptr();
  });
}

// By way of void*, as C++ calls casts between types of functions a mistake.
PyMethodDef methods[] = {
    {"from_numpy", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_from_numpy)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "from_numpy(array, device='cuda')\n--\n\n"
     "A copy of a float32 NumPy array in device memory. `array` may be changed once this has returned."},
    {"numpy", call_numpy, METH_NOARGS,
     "numpy($self, /)\n--\n\nA copy in host memory. Waits until the values are computed."},
    {}};
PyType_Slot slots[] = {{Py_tp_methods, methods}, {}};

}  // namespace

DeviceArray::DeviceArray(Shape sizes, int ordinal) : shape(std::move(sizes)), device(ordinal) {
  refuse_uncountable(shape);
  const GilReleased released;
  memory = cuda::allocate(device, bytes(*this), cuda::own_stream(device));
}

void bind_device_array(nb::module_& m) {
  using nb::arg;
  if (take_registered<DeviceArray>(m, "DeviceArray")) return;
  nb::class_<DeviceArray>(m, "DeviceArray", nb::type_slots(slots),
                          "A float32 array in the memory of a CUDA device, in C order.\n\n"
                          "What a call returns for device arrays of a library that it cannot make arrays of. Other\n"
                          "libraries take it by DLPack (``torch.from_dlpack(x)``) or ``__cuda_array_interface__``.")
      .def("__init__", refuse_construction)
      .def("__reduce__", refuse_pickling)
      .def_prop_ro("shape", [](const DeviceArray& x) { return to_tuple(x.shape); })
      .def_prop_ro(
          "strides",
          [](const DeviceArray& x) {
            Shape list = strides(x);
            for (int64_t& stride : list) stride *= int64_t(sizeof(float));
            return to_tuple(list);
          },
          "In bytes, as NumPy has them.")
      .def_prop_ro("ndim", [](const DeviceArray& x) { return x.shape.size(); })
      .def_prop_ro("size", elements)
      .def_prop_ro("nbytes", bytes)
      .def_prop_ro("dtype", [](const DeviceArray&) { return nb::module_::import_("numpy").attr("dtype")("float32"); })
      .def_prop_ro("device", where)
      .def_prop_ro(
          "stream", [](const DeviceArray& x) { return reinterpret_cast<uintptr_t>(cuda::own_stream(x.device)); },
          "The stream (a ``cudaStream_t``) whose work from now on sees the values.")
      .def("__len__", length)
      .def("__repr__", repr)
      .def("__array__", refuse_implicit_copy)
      .def("__dlpack_device__", [](const DeviceArray& x) { return nb::make_tuple(int(dl::cuda), x.device); })
      .def("__dlpack__", to_dlpack, nb::kw_only(), arg("stream") = nb::none(), arg("max_version") = nb::none(),
           arg("dl_device") = nb::none(), arg("copy") = nb::none())
      .def_prop_ro("__cuda_array_interface__", cuda_array_interface);
}

}  // namespace fl::py
