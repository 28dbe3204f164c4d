#include "bindings/arrays/array.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "bindings/arrays/call_location.h"
#include "bindings/arrays/numpy_fields.h"
#include "bindings/arrays/objects.h"
#include "core/errors.h"
#include "core/lazy.h"
#include "core/text.h"
#include "runtime/host_memory.h"

namespace fl::py {
namespace {

// NumPy's own objects, looked up once.
struct Numpy {
  nb::object ndarray, array_ufunc, generic, empty, array, asarray, copyto, dtype, float32, bool_;
  Numpy() {
    nb::module_ np = nb::module_::import_("numpy");
    ndarray = np.attr("ndarray"), array_ufunc = ndarray.attr("__array_ufunc__"), generic = np.attr("generic");
    empty = np.attr("empty"), array = np.attr("array"), asarray = np.attr("asarray"), copyto = np.attr("copyto");
    dtype = np.attr("dtype"), float32 = np.attr("float32"), bool_ = np.attr("bool_");
  }
};
const Numpy& numpy() {
  static constinit Lazy<Numpy> instance;
  return instance.get([] { return Numpy(); });
}

bool is_float32(const char* format) {
  // "f" is native; a misaligned array says "=f". What has another byte order says '>' (or '<' on a big-endian machine).
  if (!format) return false;
  if (*format == '@' || *format == '=' || *format == (PY_LITTLE_ENDIAN ? '<' : '>')) ++format;
  return std::strcmp(format, "f") == 0;
}

std::string dtype_of(nb::handle object, const std::string& otherwise) {
  const nb::object own = nb::getattr(object, "dtype", nb::none());  // in the library's own words
  return own.is_none() ? otherwise : text(own);
}

enum class Numbers { real, complex, objects, none };

// By the letter of a NumPy dtype, else by its name. bfloat16 and its like are void to NumPy and have a name.
Numbers kind_of(nb::handle object, const std::string& name) {
  const nb::object dtype = nb::getattr(object, "dtype", nb::none());
  const nb::object kind = nb::getattr(dtype, "kind", nb::none());
  const std::string letter = kind.is_none() ? "" : text(kind);
  if (letter == "c" || name.find("complex") != std::string::npos) return Numbers::complex;
  if (letter == "O") return Numbers::objects;
  const bool raw = letter == "V" && std::string_view("|[({V").find(name.front()) != std::string_view::npos;
  const bool text_or_time = letter.size() == 1 && std::string_view("SUTMm").find(letter) != std::string_view::npos;
  return raw || text_or_time ? Numbers::none : Numbers::real;
}

std::string kind_name(nb::handle object) { return text(object.type().attr("__name__")); }

// NumPy's scalars have a shape, as arrays of other libraries, which may be converted to a number as well.
bool is_scalar(nb::handle object) {
  if (nb::hasattr(object, "shape") || nb::hasattr(object, "ndim")) return nb::isinstance(object, numpy().generic);
  return PyNumber_Check(object.ptr());
}

bool numpy_may_read(nb::handle object) {
  if (PyType_Check(object.ptr()) || PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr())) return false;
  if (PySequence_Check(object.ptr()) || PyObject_CheckBuffer(object.ptr())) return true;
  for (const char* protocol : {"__array__", "__array_interface__", "__array_struct__"})
    if (nb::hasattr(object, protocol)) return true;
  return false;
}

// Tried, as nothing else tells of ragged lists and of frames with text. Of other containers than Python's own the first
// row has to do, if there are rows: the rest may be in a file.
bool numpy_reads(nb::handle object) {
  try {
    const bool whole = PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()) || !PyMapping_Check(object.ptr()) ||
                       nb::getattr(object, "ndim", nb::none()).equal(nb::int_(0));
    const nb::object part = whole ? nb::borrow(object) : nb::object(object[nb::slice(0, 1, 1)]);
    numpy().asarray(part, nb::arg("dtype") = numpy().float32);
    return true;
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return error.matches(PyExc_Warning);  // which is an error to this caller: of units that it drops, say
  }
}

// What to do about an operand that is no array, as the end of "a must be a float32 array, got list". "" where nothing
// is known to help.
std::string advice(nb::handle object, const std::string& name) {
  const bool scalar = is_scalar(object), addend = name == "c" || name == "y";  // which may have one element
  if (scalar && !addend) return "; multiply by it with * or with alpha= of sgemm and sgemv";
  if (is_from("dask.array", object.type())) return "; use fastlinalg.dask, or " + name + ".compute()";
  if (is_from("dask", object.type())) return "; use " + name + ".compute()";
  for (const char* method : {"toarray", "todense"})  // sparse matrices are sequences that NumPy cannot read
    if (nb::hasattr(object, method) && nb::hasattr(object, "shape")) return "; use " + name + "." + method + "()";
  if (!scalar && !numpy_may_read(object)) return "";
  return numpy_reads(object) ? "; use np.asarray(" + name + ", dtype=np.float32)"
                             : ", which NumPy cannot read as an array of numbers";
}

[[noreturn]] void refuse_read_only(const char* name) { throw InvalidValue(std::string(name) + " is read-only"); }

// Of a list it is "out[3]".
bool is_out(const char* name) { return std::string_view(name).starts_with("out"); }

}  // namespace

void refuse_own_meaning(nb::handle object, const char* name) {
  if (object.type().is(numpy().ndarray)) return;
  const std::string argument = name;
  if (nb::hasattr(object, "filled") && nb::hasattr(object, "mask"))
    throw InvalidType(argument + " must not be a masked array: the masked elements would be " +
                      (is_out(name) ? "written; pass " + argument + ".data, a view of all elements"
                                    : "used; pass " + argument + ".filled(0), or another number in their place"));
  if (nb::isinstance(object, numpy().ndarray) && !object.type().attr("__array_ufunc__").is(numpy().array_ufunc))
    throw InvalidType(argument + " must not be a " + kind_name(object) +
                      ": what its __array_ufunc__ adds to the numbers would be lost; pass np.asarray(" + argument +
                      ")");
}

bool holds_reals(nb::handle object, const std::string& dtype) {
  return kind_of(object, dtype_of(object, dtype)) == Numbers::real;
}

void wrong_dtype(nb::handle object, const char* name, const std::string& dtype, const std::string& cast,
                 const CallLocation* location) {
  const std::string argument = name, got = dtype_of(object, dtype);
  const char* const consent =
      location && location->other_types() == OtherTypes::offer ? ", or dtype=np.float32 to have it converted" : "";
  const std::string refused = argument + " must have dtype float32, got " + got;
  if (is_out(name))
    throw InvalidType(refused + "; allocate it as float32, since a converted copy would leave out itself unchanged");
  switch (kind_of(object, got)) {
    case Numbers::complex:
      throw InvalidType(refused + ", and products of complex numbers are not what fastlinalg computes; use " +
                        argument + ".real" + cast + " if the imaginary part does not matter");
    case Numbers::objects:
      throw InvalidType(refused + ", which holds Python objects; use " + argument + cast + " if each is a number");
    case Numbers::none: throw InvalidType(refused + ", which does not hold numbers");
    case Numbers::real: break;
  }
  throw InvalidType(refused + "; nothing is cast silently, use " + argument + cast + consent);
}

void refuse_misaligned(const char* name, int64_t bytes) {
  throw InvalidValue(std::string(name) + " is not aligned to " + std::to_string(bytes) + " bytes; pass a copy");
}

void not_an_array(nb::handle object, const char* name) {
  const std::string wanted = std::string(name) + " must be a float32 array";
  if (object.is_none()) throw InvalidType(wanted + ", got None");
  const std::string got = ", got " + (is_scalar(object) ? "the scalar " + shown(object) : kind_name(object));
  const std::string end = is_out(name) ? "" : advice(object, name);  // of `out` a copy is no help
  throw InvalidType(wanted + (end.empty() ? " (NumPy's, or one with DLPack or __cuda_array_interface__)" : "") + got +
                    end);
}

bool is_numpy_bool(nb::handle object) { return object.type().is(numpy().bool_); }
bool is_numpy_type(nb::handle type) { return PyObject_IsSubclass(type.ptr(), numpy().ndarray.ptr()) == 1; }

Array::Array(nb::handle object, const char* name, Access access, CallLocation& location) : Array() {
  if (object.type().is(numpy().ndarray)) {
    acquire(object, name, access, &location);
    library_.kind = Library::numpy;
    join(name, location);
  } else {
    acquire_foreign(object, name, access, location);
  }
}

Array::Array(nb::handle object, const char* name, Access access) : Array() {
  if (!nb::isinstance(object, numpy().ndarray)) not_an_array(object, name);
  refuse_own_meaning(object, name);
  acquire(object, name, access, nullptr);
}

Array::Array(float* data, const Shape& shape) : Array() {
  data_ = data;
  set_ndim(int(shape.size()));
  int64_t stride = 1;
  for (int i = ndim_ - 1; i >= 0; --i) {
    shape_[i] = shape[size_t(i)], strides_[i] = stride;
    stride *= shape_[i];
  }
}

Array::Array(nb::object result, void* data, const Shape& shape, const CallLocation& location)
    : Array(static_cast<float*>(data), shape) {
  object_ = std::move(result), library_ = location.library();
  if (location.on_device()) device_ = location.device();
}

void Array::acquire(nb::handle object, const char* name, Access access, const CallLocation* location) {
  const NumpyFields* const x = object.type().is(numpy().ndarray) ? numpy_fields(object) : nullptr;
  if (x && !(access == write && x->warns_on_write())) {
    object_ = nb::borrow(object);
    if (access == write && !x->writeable()) refuse_read_only(name);
    set_numpy(Element::float32, x->data, x->ndim, x->shape, x->strides);
  } else {
    acquire_buffer(object, name, access, location);
  }
  if (misaligned_ && access == read) acquire_numpy_copy(object, name);
}

void Array::acquire_numpy_copy(nb::handle object, const char* name) {
  nb::object copy =
      numpy().array(object, nb::arg("dtype") = numpy().float32, nb::arg("copy") = true, nb::arg("subok") = false);
  release();
  acquire(copy, name, read, nullptr);
}

void Array::acquire_buffer(nb::handle object, const char* name, Access access, const CallLocation* location) {
  const bool converts = location && location->other_types() == OtherTypes::convert && access == read;
  if (Element known{}; converts && object.type().is(numpy().ndarray) && numpy_fields_of_16_bits(object, known))
    if (acquire_stored(object, *location)) return;
  // NumPy exports no numbers of other packages' types, bfloat16 say.
  if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) PyErr_Clear();
  object_ = nb::borrow(object);
  if (buffer_.obj && is_float32(buffer_.format)) {
    if (access == write && buffer_.readonly) refuse_read_only(name);
    return set_numpy(Element::float32, buffer_.buf, buffer_.ndim, buffer_.shape, buffer_.strides);
  }
  if (converts && acquire_stored(object, *location)) return;
  if (!converts || !holds_reals(object, "")) wrong_dtype(object, name, "", ".astype(np.float32)", location);
  acquire_numpy_copy(object, name);
}

void Array::set_numpy(Element element, void* data, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides) {
  const auto size = Py_ssize_t(size_of(element));
  numpy_ = true;
  data_ = static_cast<float*>(data);
  set_ndim(ndim);
  misaligned_ = reinterpret_cast<uintptr_t>(data) % uintptr_t(size) != 0;
  for (int i = 0; i < ndim_; ++i) {
    // The stride of a dimension of size 1 (or of an empty array) is never used and may be anything.
    if (strides[i] % size != 0 && shape[i] > 1) misaligned_ = true;
    shape_[i] = shape[i];
  }
  for (int i = 0; i < ndim_; ++i) strides_[i] = strides[i] / (misaligned_ ? 1 : size);
}

void Array::release() {
  if (buffer_.obj) PyBuffer_Release(&buffer_);
  numpy_ = false;
  stored_ = {};
  owner_.reset();
  object_.reset();
}

Array::Array(Array&& other) noexcept : Array() { *this = std::move(other); }

Array& Array::operator=(Array&& other) noexcept {
  if (this == &other) return *this;
  release();
  if (other.buffer_.obj) buffer_ = other.buffer_;
  other.buffer_.obj = nullptr;
  numpy_ = other.numpy_;
  stored_ = other.stored_;
  library_ = other.library_, device_ = other.device_;
  object_ = std::move(other.object_);
  owner_ = std::move(other.owner_);
  data_ = other.data_, ndim_ = other.ndim_, misaligned_ = other.misaligned_;
  shape_ = std::move(other.shape_), strides_ = std::move(other.strides_);
  return *this;
}

Array Array::view() const {
  Array same;
  same.numpy_ = numpy_, same.stored_ = stored_, same.library_ = library_, same.device_ = device_;
  same.object_ = object_, same.owner_ = owner_;
  same.data_ = data_, same.misaligned_ = misaligned_;
  same.set_ndim(ndim_);
  std::copy_n(shape_.data(), ndim_, same.shape_.data()), std::copy_n(strides_.data(), ndim_, same.strides_.data());
  return same;
}

bool Array::join_rows() {
  const int last = ndim_ - 1;
  int64_t rows = 1, step = shape_[last];
  for (int i = last; i-- > 0; rows *= shape_[i]) {
    if (shape_[i] <= 1 || rows == 0 || shape_[last] == 0) continue;  // no elements lie anywhere
    if (rows == 1) step = strides_[i];
    else if (strides_[i] != step * rows) return false;
  }
  const int64_t columns = shape_[last], along = strides_[last];
  set_ndim(2);
  shape_[0] = rows, shape_[1] = columns, strides_[0] = step, strides_[1] = along;
  return true;
}

void Array::join(const char* name, CallLocation& location) const {
  if (device_ < 0) location.add_host(name, object_, library_);
  else location.add_device(name, object_, library_, device_);
}

bool Array::has_to_be_read_again() const {
  return device_ >= 0 && (library_.kind == Library::dlpack || library_.kind == Library::cuda_array_interface);
}

void Array::require_writeable(const char* name) const {
  if (!numpy_) return;
  const NumpyFields* const x = object_.type().is(numpy().ndarray) ? numpy_fields(object_) : nullptr;
  if (!(x ? x->writeable() : nb::cast<bool>(object_.attr("flags").attr("writeable")))) refuse_read_only(name);
}

bool Array::broadcast_to(std::span<const int64_t> shape) {
  const int added = int(shape.size()) - ndim_;
  if (added < 0) return false;
  for (int i = 0; i < ndim_; ++i)
    if (shape_[i] != 1 && shape_[i] != shape[size_t(added + i)]) return false;
  set_ndim(int(shape.size()));
  for (int i = int(shape.size()) - 1; i >= 0; --i) {
    const int own = i - added;
    strides_[i] = own < 0 || shape_[own] == 1 ? 0 : strides_[own];
    shape_[i] = shape[size_t(i)];
  }
  return true;
}

bool Array::same_view(const Array& other) const {
  if (data() != other.data() || ndim() != other.ndim() || stored_.element != other.stored_.element) return false;
  if (stride_unit() != other.stride_unit()) return false;
  for (int i = 0; i < ndim(); ++i)
    if (shape(i) != other.shape(i) || (shape(i) > 1 && stride(i) != other.stride(i))) return false;
  return true;
}

Array::Extent Array::extent() const {
  const char *low = reinterpret_cast<const char*>(data_), *high = low + size_of(stored_.element) - 1;
  for (int i = 0; i < ndim_; ++i) {
    if (shape_[i] == 0) return {};
    const int64_t reach = (shape_[i] - 1) * strides_[i] * stride_unit();
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

bool Array::overlaps(const Array& other) const { return extent().overlaps(other.extent()); }

bool Array::overlaps_itself() const {
  // Sorted by stride, each dimension has to step over all that the smaller ones reach.
  std::pair<int64_t, int64_t> dims[max_dims];  // stride, size
  int used = 0;
  for (int i = 0; i < ndim(); ++i) {
    if (shape(i) == 0) return false;
    if (shape(i) > 1) dims[used++] = {std::abs(stride(i)), shape(i)};
  }
  std::sort(dims, dims + used);
  int64_t reach = misaligned_ ? sizeof(float) - 1 : 0;
  for (int i = 0; i < used; ++i) {
    const auto [stride, size] = dims[i];
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

std::string shown(nb::handle object) {
  const nb::object shortened = nb::module_::import_("reprlib").attr("Repr")();
  for (const char* limit : {"maxstring", "maxlong", "maxother"}) shortened.attr(limit) = 80;
  return text(shortened.attr("repr")(object));
}

std::string to_string(std::span<const int64_t> shape) {
  return "(" + joined(shape, ", ", [](int64_t size) { return std::to_string(size); }) +
         (shape.size() == 1 ? ",)" : ")");
}

std::string to_string(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

namespace {

// 0 if the size cannot be told, which NumPy then complains about.
size_t bytes_of(const Shape& shape) {
  size_t bytes = sizeof(float);
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(bytes, size_t(size), &bytes)) return 0;
  return bytes;
}

nb::object large_empty(const Shape& shape, size_t bytes) {
  auto block = std::make_unique<ResultBlock>(take_result_block(bytes));
  void* const data = block->data;
  const nb::capsule owner(block.release(), [](void* pointer) noexcept {
    const std::unique_ptr<ResultBlock> freed(static_cast<ResultBlock*>(pointer));
    free_result_block(*freed);
  });
  const std::vector<size_t> sizes(shape.begin(), shape.end());
  return nb::cast(nb::ndarray<nb::numpy, float>(data, sizes.size(), sizes.data(), owner));
}

}  // namespace

bool names_float32(nb::handle dtype) {
  if (dtype.is(numpy().float32)) return true;
  try {
    return numpy().dtype(dtype).equal(numpy().dtype(numpy().float32));
  } catch (const nb::python_error&) {
    return text(dtype) == "torch.float32";  // NumPy knows no types of torch
  }
}

nb::object to_tuple(const Shape& shape) {
  nb::object sizes = nb::steal(PyTuple_New(Py_ssize_t(shape.size())));
  for (size_t i = 0; i < shape.size(); ++i) PyTuple_SetItem(sizes.ptr(), Py_ssize_t(i), PyLong_FromLongLong(shape[i]));
  return sizes;
}

nb::object empty(const Shape& shape) {
  if (const size_t bytes = bytes_of(shape); bytes >= smallest_result_block) return large_empty(shape, bytes);
  return numpy().empty(to_tuple(shape), names().float32);  // the type itself takes 30 ns longer
}

void report_overflow() { numpy().array(1e300).attr("astype")(numpy().float32); }

void copy_into(nb::handle target, nb::handle source) { numpy().copyto(target, source); }

}  // namespace fl::py
