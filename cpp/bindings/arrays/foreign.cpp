// Arrays that are not NumPy's: by DLPack in its three forms (the table of C functions of torch, a capsule with a
// version and one without), else by __cuda_array_interface__.
#include <algorithm>
#include <cstring>
#include <limits>
#include <typeinfo>

#include "bindings/arrays/array.h"
#include "bindings/arrays/call_location.h"
#include "bindings/arrays/device_array.h"
#include "bindings/arrays/gil.h"
#include "bindings/arrays/objects.h"
#include "core/errors.h"
#include "device/streams.h"

namespace fl::py {
namespace {

bool on_host(dl::Device device) { return device.type == dl::cpu || device.type == dl::cuda_host; }

void require_known(dl::Device device, const char* name) {
  if (on_host(device) || device.type == dl::cuda || device.type == dl::cuda_managed) return;
  throw InvalidType(std::string(name) + " is on a device that fastlinalg does not know (DLPack device type " +
                    std::to_string(device.type) + "); it takes arrays in host memory and on CUDA devices");
}

std::string to_string(dl::DataType type) {
  static constexpr const char* codes[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  std::string text = type.code <= dl::boolean ? codes[type.code] : "code " + std::to_string(type.code) + ", bits ";
  text += std::to_string(type.bits);
  return type.lanes == 1 ? text : text + " x " + std::to_string(type.lanes);
}

const char* cast_of(const Library& library) {
  return library.kind == Library::torch ? ".to(torch.float32)" : ".astype('float32')";
}

dl::Device reported_device(nb::handle object, const char* name) {
  const nb::object reported = called([&] { return PyObject_CallMethod(object.ptr(), "__dlpack_device__", nullptr); });
  try {
    if (!PySequence_Check(reported.ptr()) || PySequence_Size(reported.ptr()) != 2) throw std::bad_cast();
    return {nb::cast<int32_t>(nb::int_(reported[0])), nb::cast<int32_t>(nb::int_(reported[1]))};
  } catch (const std::bad_cast&) {
    throw InvalidType(std::string(name) + ".__dlpack_device__() gave " + shown(reported) +
                      ", and has to give two integers");
  }
}

// ---------------------------------------------------------------- the capsule
struct Exported {
  nb::object capsule;  // never marked as used: what it holds is freed with it
  const dl::Tensor* tensor;
  uint64_t flags;
};

Exported read_capsule(nb::object capsule, const char* name) {
  if (PyCapsule_IsValid(capsule.ptr(), dl::capsule_versioned)) {
    auto* x = static_cast<dl::ManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), dl::capsule_versioned));
    if (x->version.major != dl::version.major)
      throw InvalidType(std::string(name) + " comes in version " + std::to_string(x->version.major) +
                        " of DLPack; fastlinalg reads version 1 and what was before it");
    return {std::move(capsule), &x->tensor, x->flags};
  }
  if (PyCapsule_IsValid(capsule.ptr(), dl::capsule)) {
    auto* x = static_cast<dl::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), dl::capsule));
    return {std::move(capsule), &x->tensor, 0};
  }
  throw InvalidType(std::string(name) + ".__dlpack__() gave " + shown(capsule) + ", which is no DLPack capsule");
}

// In the words of Python's own functions, and of those that pybind11 and nanobind make.
bool about_keywords(const nb::python_error& error) {
  if (!error.matches(PyExc_TypeError)) return false;
  const std::string message = text(error.value());
  return message.find("keyword") != message.npos || message.find("incompatible function") != message.npos;
}

// object.__dlpack__(values...) with these keyword names; null if the method does not know one of them.
nb::object export_with(nb::handle object, nb::handle keywords, nb::handle first, nb::handle second = {}) {
  PyObject* arguments[] = {object.ptr(), first.ptr(), second.ptr()};
  try {
    return called([&] { return PyObject_VectorcallMethod(names().dlpack.ptr(), arguments, 1, keywords.ptr()); });
  } catch (const nb::python_error& error) {
    if (!about_keywords(error)) throw;
    return {};
  }
}

// Versions came with version 1.0; a producer without them takes no such keyword.
nb::object export_host(nb::handle object) {
  nb::object capsule = export_with(object, names().version, names().newest);
  return capsule ? capsule : called([&] { return PyObject_CallMethod(object.ptr(), "__dlpack__", nullptr); });
}
nb::object export_device(nb::handle object, nb::handle stream) {
  nb::object capsule = export_with(object, names().stream_and_version, stream, names().newest);
  return capsule ? capsule : object.attr("__dlpack__")(nb::arg("stream") = stream);
}

// What the caller of __dlpack__ says of its stream. A producer cannot make a graph that is being captured wait for it.
nb::object dlpack_stream(const CallLocation& location) {
  if (cuda::capturing(location.device(), location.stream())) return names().no_sync;
  return nb::int_(reinterpret_cast<uintptr_t>(location.stream()));
}

// ---------------------------------------------------------------- torch
bool records_gradients() { return nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")()); }

// Two of torch.Tensor's own, found once: to look one up takes as long as to ask it. Other classes may have others, and
// where `requires_grad` is no descriptor each tensor may.
struct TensorMembers {
  nb::object requires_grad, is_neg;
  descrgetfunc get;
  TensorMembers() {
    const nb::object tensor = nb::module_::import_("torch").attr("Tensor");
    requires_grad = tensor.attr("requires_grad"), is_neg = tensor.attr("is_neg");
    get = reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(requires_grad.ptr()), Py_tp_descr_get));
  }
};
nb::object requires_grad(nb::handle tensor, const TensorMembers* known) {
  if (!known) return attribute(tensor, names().requires_grad);
  PyObject* const value = known->get(known->requires_grad.ptr(), tensor.ptr(), tensor.type().ptr());
  if (!value) throw nb::python_error();
  return nb::steal(value);
}

// In forward mode, of which a torch that has it says by the level that it is at whether anybody uses it.
bool has_tangent(nb::handle tensor) {
  const nb::object module = nb::steal(PyImport_GetModule(names().forward_ad.ptr()));
  if (!module) return PyErr_Clear(), false;
  const nb::object level = nb::getattr(module, names().current_level, nb::none());
  if (!PyLong_Check(level.ptr()) || PyLong_AsLong(level.ptr()) < 0) return false;
  return !module.attr("unpack_dual")(tensor).attr("tangent").is_none();
}

// What a tensor means beyond its elements in memory. None of it has a counterpart here.
void refuse_lazy(nb::handle tensor, const char* name, bool plain) {
  static constinit Lazy<TensorMembers> members;
  const TensorMembers* known = plain ? &members.get([] { return TensorMembers(); }) : nullptr;
  if (known && !known->get) known = nullptr;
  const nb::object grad = requires_grad(tensor, known);
  if (grad.ptr() == Py_True && records_gradients())
    throw InvalidType(std::string(name) + " requires grad, and fastlinalg records no gradients here; use " +
                      "fastlinalg.torch, pass " + name + ".detach(), or call it under torch.no_grad()");
  PyObject* arguments[] = {tensor.ptr()};
  const nb::object negative = nb::steal(known ? PyObject_Vectorcall(known->is_neg.ptr(), arguments, 1, nullptr)
                                              : PyObject_VectorcallMethod(names().is_neg.ptr(), arguments, 1, nullptr));
  if (negative.ptr() == Py_True)
    throw InvalidType(std::string(name) +
                      " has its negative bit set: the elements in memory are not its values; pass " + name +
                      ".resolve_neg()");
  if (!negative.is_valid()) throw nb::python_error();
  if (has_tangent(tensor))
    throw InvalidType(std::string(name) + " has a tangent of forward mode, which would be lost; pass its primal, " +
                      "torch.autograd.forward_ad.unpack_dual(" + name + ").primal");
}

[[noreturn]] void refuse_without_elements(nb::handle tensor, const char* name) {
  const auto described = [&](const char* what) { return text(nb::getattr(tensor, what, nb::none())); };
  throw InvalidType(std::string(name) + " is a torch tensor that has no elements in memory to read (layout " +
                    described("layout") + ", device " + described("device") + ", type " +
                    text(tensor.type().attr("__name__")) + "); fastlinalg takes strided ones on the CPU or a CUDA " +
                    "device, and fastlinalg.torch also those that torch traces or transforms");
}

// With the exception set by which torch has said that it cannot show a tensor's memory.
[[noreturn]] void refuse_unreadable(nb::handle tensor, const char* name) {
  if (!PyErr_ExceptionMatches(PyExc_RuntimeError) && !PyErr_ExceptionMatches(PyExc_BufferError) &&
      !PyErr_ExceptionMatches(PyExc_TypeError))
    throw nb::python_error();
  PyErr_Clear();
  refuse_without_elements(tensor, name);
}

// CuPy's dtypes are NumPy's own objects.
dl::DataType cupy_type(nb::handle dtype) {
  if (dtype.is(names().float32)) return dl::float32;
  const std::string name = text(dtype);
  return name == "float32"    ? dl::float32
         : name == "float16"  ? dl::float16
         : name == "bfloat16" ? dl::bfloat16
                              : dl::DataType{dl::opaque, 0, 0};
}

bool has_elements(const dl::Tensor& x) {
  return std::all_of(x.shape, x.shape + x.ndim, [](int64_t size) { return size > 0; });
}

}  // namespace

// ---------------------------------------------------------------- Array
bool Array::takes(dl::DataType type, Access access, const CallLocation& location) {
  if (type == dl::float32) return true;
  const bool half = type == dl::float16, brain = type == dl::bfloat16;
  if ((!half && !brain) || access == write || location.other_types() != OtherTypes::convert) return false;
  stored_ = {half ? Element::float16 : Element::bfloat16, nullptr, location.overflowed()};
  return true;
}

void Array::set(const dl::Tensor& tensor, const char* name) {
  if (tensor.ndim > max_dims)
    throw InvalidValue(std::string(name) + " has " + std::to_string(tensor.ndim) + " dimensions; at most " +
                       std::to_string(max_dims) + " are possible");
  if (tensor.ndim < 0) throw InvalidValue(std::string(name) + " has " + std::to_string(tensor.ndim) + " dimensions");
  if (tensor.ndim > 0 && !tensor.shape)
    throw InvalidType(std::string(name) + " has " + std::to_string(tensor.ndim) + " dimensions and no shape");
  set_ndim(tensor.ndim);
  int64_t compact = 1, reach = 0, way = 0;
  bool empty = false, too_large = false;
  for (int i = ndim_ - 1; i >= 0; --i) {
    shape_[i] = tensor.shape[i];
    if (shape_[i] < 0) throw InvalidValue(std::string(name) + " has a dimension of size " + std::to_string(shape_[i]));
    strides_[i] = tensor.strides ? tensor.strides[i] : compact;
    too_large |= __builtin_mul_overflow(shape_[i] - 1, strides_[i], &way);
    too_large |= way < 0 ? __builtin_sub_overflow(reach, way, &reach) : __builtin_add_overflow(reach, way, &reach);
    if (!tensor.strides) too_large |= __builtin_mul_overflow(compact, shape_[i], &compact);
    empty = empty || shape_[i] == 0;
  }
  data_ = reinterpret_cast<float*>(uintptr_t(tensor.data) + tensor.byte_offset);
  if (stored_.converted()) stored_.origin = data_;
  if (empty) return;
  if (!tensor.data) throw InvalidValue(std::string(name) + " has elements, and its memory is at address 0");
  if (too_large || reach > std::numeric_limits<int64_t>::max() / int64_t(sizeof(float)))
    throw InvalidValue(std::string(name) + " would be larger than the address space");
  const std::size_t size = size_of(stored_.element);
  if (reinterpret_cast<uintptr_t>(data_) % size != 0) refuse_misaligned(name, int64_t(size));
}

void Array::acquire_foreign(nb::handle object, const char* name, Access access, CallLocation& location) {
  library_ = location.in_operator() ? torch_in_operator() : library_of(object);
  object_ = nb::borrow(object);
  if (access == write && library_.immutable)
    throw InvalidValue(std::string(name) + " is a JAX array, which nothing may write to; leave it out");
  switch (library_.kind) {
    case Library::numpy:
      refuse_own_meaning(object, name);
      acquire(object, name, access, &location);
      return join(name, location);
    case Library::own: {
      if (!nb::inst_ready(object))
        throw InvalidType(std::string(name) + " is a DeviceArray without memory; use DeviceArray.from_numpy");
      const auto& array = *nb::inst_ptr<DeviceArray>(object);
      Array view(static_cast<float*>(array.memory.get()), array.shape);
      data_ = view.data_, ndim_ = view.ndim_;
      shape_ = std::move(view.shape_), strides_ = std::move(view.strides_);
      device_ = array.device;
      return join(name, location);
    }
    case Library::torch:
      if (!location.in_operator()) refuse_lazy(object, name, library_.api != nullptr);
      if (library_.api) return acquire_torch(object, name, access, location);
      return acquire_exported(object, name, access, location);
    case Library::cupy: return acquire_cupy(object, name, access, location);
    case Library::dlpack: return acquire_exported(object, name, access, location);
    case Library::cuda_array_interface: return acquire_interface(object, name, access, location);
    case Library::none: break;
  }
  not_an_array(object, name);
}

void Array::acquire_torch(nb::handle object, const char* name, Access access, CallLocation& location) {
  dl::Tensor tensor;
  if (library_.api->tensor_from_object(object.ptr(), &tensor) != 0) refuse_unreadable(object, name);
  require_known(tensor.device, name);
  if (!takes(tensor.dtype, access, location))
    return acquire_converted(object, name, to_string(tensor.dtype), cast_of(library_), access, location);
  set(tensor, name);
  if (!on_host(tensor.device)) device_ = tensor.device.id;
  join(name, location);
}

// Its attributes cost less than a capsule (H200 host: 0.21 against 0.29 us).
void Array::acquire_cupy(nb::handle object, const char* name, Access access, CallLocation& location) {
  const dl::DataType type = cupy_type(attribute(object, names().dtype));
  if (!takes(type, access, location)) return acquire_converted(object, name, "", cast_of(library_), access, location);
  const int64_t element = type.bits / 8;
  const nb::object memory = attribute(object, names().data);
  const nb::object shape = attribute(object, names().shape), strides = attribute(object, names().strides);
  int64_t sizes[max_dims], steps[max_dims];
  const Py_ssize_t ndim = PyTuple_Size(shape.ptr());
  for (Py_ssize_t i = 0; i < std::min<Py_ssize_t>(ndim, max_dims); ++i) {
    sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(shape.ptr(), i));
    const int64_t bytes = PyLong_AsLongLong(PyTuple_GetItem(strides.ptr(), i));
    if (bytes % element != 0 && sizes[i] > 1) refuse_misaligned(name, element);
    steps[i] = bytes / element;
  }
  void* const data = PyLong_AsVoidPtr(attribute(memory, names().ptr).ptr());
  device_ = int(PyLong_AsLong(attribute(memory, names().device_id).ptr()));
  if (PyErr_Occurred()) throw nb::python_error();  // a derived class with other attributes
  set({data, {}, int32_t(ndim), type, sizes, steps, 0}, name);
  join(name, location);
}

void Array::acquire_exported(nb::handle object, const char* name, Access access, CallLocation& location) {
  nb::object capsule;
  const bool ordered_here = library_.kind == Library::torch;  // its stream is known: it need not order anything
  const dl::Device device = reported_device(object, name);
  require_known(device, name);
  if (!on_host(device)) device_ = device.id;
  if (on_host(device)) {
    capsule = export_host(object);
  } else if (ordered_here) {
    capsule = export_device(object, names().no_sync);
  } else {
    join(name, location);
    capsule = export_device(object, dlpack_stream(location));
  }

  Exported exported = read_capsule(std::move(capsule), name);
  if (!takes(exported.tensor->dtype, access, location))
    return acquire_converted(object, name, to_string(exported.tensor->dtype), cast_of(library_), access, location);
  if (on_host(exported.tensor->device) != on_host(device))
    throw InvalidType(std::string(name) + ".__dlpack_device__() gave DLPack device type " +
                      std::to_string(device.type) + ", and __dlpack__() an array on type " +
                      std::to_string(exported.tensor->device.type));
  if (!on_host(device) && exported.tensor->device.id != device.id)
    throw InvalidType(std::string(name) + ".__dlpack_device__() gave cuda:" + std::to_string(device.id) +
                      ", and __dlpack__() an array on cuda:" + std::to_string(exported.tensor->device.id));
  if (access == write && exported.flags & dl::read_only) throw InvalidValue(std::string(name) + " is read-only");
  if (access == write && exported.flags & dl::is_copied)
    throw InvalidValue(std::string(name) + " cannot be written: its __dlpack__() gives a copy");
  if (ordered_here && !exported.tensor->data && has_elements(*exported.tensor)) refuse_without_elements(object, name);
  set(*exported.tensor, name);
  owner_ = std::move(exported.capsule);
  if (has_to_be_read_again()) return location.keep(owner_);
  join(name, location);
}

// A detached tensor has the same memory, and keeps it when `x.data = y` gives another to `x`; torch's capsules do not.
void Array::hold() {
  if (library_.kind == Library::torch) owner_ = object_.attr("detach")();
}

}  // namespace fl::py
