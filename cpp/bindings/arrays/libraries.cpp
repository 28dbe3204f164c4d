#include "bindings/arrays/libraries.h"

#include <array>
#include <atomic>
#include <mutex>

#include "bindings/arrays/array.h"
#include "bindings/arrays/device_array.h"
#include "bindings/arrays/objects.h"
#include "core/errors.h"
#include "core/lazy.h"
#include "device/streams.h"
#include "runtime/fork.h"

namespace fl::py {
namespace {

nb::object loaded_module(const char* name) {
  nb::object module = nb::steal(PyImport_GetModule(nb::str(name).ptr()));
  if (!module) PyErr_Clear();
  return module;
}

// Whether `type` is a class that a loaded module has under this name, or is derived from it.
bool derived_from(nb::handle type, const char* module, const char* name) {
  const nb::object loaded = loaded_module(module);
  if (!loaded) return false;
  const nb::object base = nb::getattr(loaded, name, nb::none());
  return PyType_Check(base.ptr()) &&
         PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), reinterpret_cast<PyTypeObject*>(base.ptr()));
}

// The table of a torch that has one (2.10).
const dl::ExchangeApi* exchange_api(nb::handle type) {
  const nb::object capsule = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  if (!PyCapsule_IsValid(capsule.ptr(), dl::exchange_capsule)) return nullptr;
  auto* api = static_cast<const dl::ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), dl::exchange_capsule));
  while (api && api->version.major != dl::version.major) api = api->previous;
  return api && api->tensor_from_object ? api : nullptr;
}

// The two types whose data are always what the table says: other subclasses may stand for something else (a traced or a
// distributed tensor) and decide in __dlpack__ what they export.
bool is_plain_tensor(nb::handle type) {
  const nb::object name = type.attr("__name__");
  return name.equal(nb::str("Tensor")) || name.equal(nb::str("Parameter"));
}

bool has_dlpack(nb::handle x) { return nb::hasattr(x, "__dlpack__") && nb::hasattr(x, "__dlpack_device__"); }

Library look_up(nb::handle type) {
  if (is_numpy_type(type)) return {.kind = Library::numpy};
  if (type.is(nb::type<DeviceArray>())) return {.kind = Library::own};
  if (derived_from(type, "torch", "Tensor"))
    return {.kind = Library::torch, .api = is_plain_tensor(type) ? exchange_api(type) : nullptr};
  if (derived_from(type, "cupy", "ndarray")) return {.kind = Library::cupy};
  if (has_dlpack(type)) return {.kind = Library::dlpack, .immutable = is_from("jax", type)};
  if (nb::hasattr(type, "__cuda_array_interface__")) return {.kind = Library::cuda_array_interface};
  return {};
}

// An instance may have what its type does not announce. One that does arithmetic by rules of its own, with units say,
// only passes on what the array has that it holds.
Library look_at(nb::handle object) {
  if (PyType_Check(object.ptr())) return {};  // a class has the attributes of its instances
  if (nb::hasattr(object.type(), "__array_ufunc__")) return {};
  if (has_dlpack(object)) return {.kind = Library::dlpack};
  if (nb::hasattr(object, "__cuda_array_interface__")) return {.kind = Library::cuda_array_interface};
  return {};
}

// What types are, read without a lock: without the GIL too, entries are only added. Not without end, as types made in a
// loop must not fill the memory.
class SeenTypes {
 public:
  const Library* find(PyTypeObject* type) const {
    const size_t count = count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i)
      if (entries_[i].type == type) return &entries_[i].library;
    return nullptr;
  }
  void add(PyTypeObject* type, const Library& library) {
    const std::lock_guard lock(adding_.get());
    const size_t count = count_.load(std::memory_order_relaxed);
    if (count == entries_.size() || find(type)) return;
    Py_INCREF(reinterpret_cast<PyObject*>(type));  // another type could get this address
    entries_[count] = {type, library};
    count_.store(count + 1, std::memory_order_release);
  }

 private:
  struct Entry {
    PyTypeObject* type = nullptr;
    Library library;
  };
  std::array<Entry, 64> entries_;
  std::atomic<size_t> count_{0};
  PerProcess<std::mutex> adding_;
};

uintptr_t call_for_handle(nb::handle function, int device, nb::handle attribute) {
  const nb::object stream = function(device);
  return nb::cast<uintptr_t>(nb::object(nb::steal(PyObject_GetAttr(stream.ptr(), attribute.ptr()))));
}

}  // namespace

bool is_from(const char* package, nb::handle type) {
  const nb::object module = nb::getattr(type, "__module__", nb::none());
  return nb::isinstance<nb::str>(module) &&
         PyUnicode_Tailmatch(module.ptr(), nb::str(package).ptr(), 0, PY_SSIZE_T_MAX, -1) == 1;
}

Library library_of(nb::handle object) {
  static constinit SeenTypes seen;
  PyTypeObject* const type = Py_TYPE(object.ptr());
  if (const Library* const known = seen.find(type)) return *known;
  const Library library = look_up(object.type());
  if (library.kind == Library::none) return look_at(object);
  seen.add(type, library);
  return library;
}

const Library& torch_in_operator() {
  static constinit Lazy<Library> library;
  return library.get([] {
    const nb::object torch = loaded_module("torch");
    const dl::ExchangeApi* const api = torch ? exchange_api(torch.attr("Tensor")) : nullptr;
    if (!api) throw InvalidType("operators on tensors need PyTorch 2.10 or newer");
    return Library{.kind = Library::torch, .api = api};
  });
}

void* current_stream(const Library& library, int device) {
  void* stream = nullptr;
  switch (library.kind) {
    case Library::own: return cuda::own_stream(device);
    case Library::torch:
      if (library.api) {
        if (library.api->current_stream(dl::cuda, device, &stream) != 0) throw nb::python_error();
      } else {
        const nb::object get = loaded_module("torch").attr("cuda").attr("current_stream");
        stream = reinterpret_cast<void*>(call_for_handle(get, device, names().cuda_stream));
      }
      break;
    case Library::cupy: {
      static constinit Lazy<nb::object> get;
      const auto look_up = [] { return nb::object(loaded_module("cupy").attr("cuda").attr("get_current_stream")); };
      stream = reinterpret_cast<void*>(call_for_handle(get.get(look_up), device, names().ptr));
      break;
    }
    default: return nullptr;
  }
  return stream_of(reinterpret_cast<uintptr_t>(stream));
}

}  // namespace fl::py
