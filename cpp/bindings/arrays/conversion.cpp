// Operands of another real type, which a caller who gives `dtype=np.float32` lets become float32. NumPy's are seen as
// they are stored until it is known where the call runs: a GPU gets them converted by the copy that happens anyway, and
// for the CPU convert() makes a copy, with all threads. Of other libraries what is in 16 bits is seen as it is stored;
// the rest they convert themselves.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "bindings/arrays/array.h"
#include "bindings/arrays/call_location.h"
#include "bindings/arrays/gil.h"
#include "bindings/arrays/numpy_fields.h"
#include "runtime/conversion.h"

namespace fl::py {
namespace {

// By the letter of the buffer protocol. Letters of integers mean different sizes with and without a prefix.
std::optional<Element> element_of(const char* format, Py_ssize_t size) {
  if (*format == '@' || *format == '=' || *format == (PY_LITTLE_ENDIAN ? '<' : '>')) ++format;
  if (format[0] == '\0' || format[1] != '\0') return std::nullopt;
  const auto of_size = [size](Element one, Element two, Element four, Element eight) -> std::optional<Element> {
    return size == 1 ? one : size == 2 ? two : size == 4 ? four : eight;
  };
  if (*format == 'd' && size == 8) return Element::float64;
  if (*format == 'e') return Element::float16;
  if (std::strchr("bhilqn", *format)) return of_size(Element::int8, Element::int16, Element::int32, Element::int64);
  if (std::strchr("?BHILQN", *format))
    return of_size(Element::uint8, Element::uint16, Element::uint32, Element::uint64);
  return std::nullopt;
}

bool is_bfloat16(nb::handle numpy_array) { return text(numpy_array.attr("dtype").attr("name")) == "bfloat16"; }

}  // namespace

// False if it is for NumPy to convert, if at all: a type that element.h does not list, or elements at odd addresses. A
// NumPy dtype is not asked for its name where the buffer tells it: that takes microseconds.
bool Array::acquire_stored(nb::handle object, const CallLocation& location) {
  const auto set = [&](Element element, void* data, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides) {
    set_numpy(element, data, ndim, shape, strides);
    if (misaligned_) return misaligned_ = numpy_ = false;
    stored_ = {element, data_, location.overflowed()};
    return true;
  };
  std::optional<Element> element;
  if (buffer_.obj) {
    element = element_of(buffer_.format, buffer_.itemsize);
  } else if (Element known{}; const NumpyFields* const x = numpy_fields_of_16_bits(object, known)) {
    object_ = nb::borrow(object);
    return set(known, x->data, x->ndim, x->shape, x->strides);
  } else if (is_bfloat16(object)) {
    const nb::object bits = object.attr("view")("uint16");
    if (PyObject_GetBuffer(bits.ptr(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) throw nb::python_error();
    element = Element::bfloat16;
    remember_bfloat16(object.attr("dtype"));
  }
  return element && set(*element, buffer_.buf, buffer_.ndim, buffer_.shape, buffer_.strides);
}

void Array::acquire_converted(nb::handle object, const char* name, const std::string& dtype, const std::string& cast,
                              Access access, CallLocation& location) {
  const char* const method = library_.kind == Library::torch ? "to" : "astype";
  if (location.other_types() != OtherTypes::convert || access == write || !holds_reals(object, dtype) ||
      !nb::hasattr(object, method))
    wrong_dtype(object, name, dtype, cast, &location);
  const nb::object made = library_.kind == Library::torch
                              ? object.attr(method)(nb::module_::import_("torch").attr("float32"))
                              : object.attr(method)("float32");
  location.set_other_types(OtherTypes::refuse);  // a second time it would convert for ever
  Array converted(made, name, access, location);
  location.set_other_types(OtherTypes::convert);
  *this = std::move(converted);
}

// What is stored farthest apart comes first: reading so goes through memory in order, and a copy has that order.
std::vector<int> Array::farthest_first() const {
  std::vector<int> order;
  for (int i = 0; i < ndim_; ++i)
    if (shape_[i] == 0 || (shape_[i] != 1 && strides_[i] != 0)) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int i, int j) { return std::abs(strides_[i]) > std::abs(strides_[j]); });
  return order;
}

int64_t Array::different_elements() const {
  int64_t total = 1;
  for (const int i : farthest_first()) total *= shape_[i];
  return total;
}

Array Array::densely(Array&& memory) const {
  Array copy = std::move(memory);
  copy.set_ndim(ndim_);
  std::copy_n(shape_.data(), ndim_, copy.shape_.data());
  std::fill_n(copy.strides_.data(), ndim_, 0);
  int64_t total = 1;
  const std::vector<int> order = farthest_first();
  for (size_t i = order.size(); i-- > 0; total *= shape_[order[i]]) copy.strides_[order[i]] = total;
  return copy;
}

void Array::convert() {
  if (!stored_.converted()) return;
  std::vector<StridedDim> dims;
  for (const int i : farthest_first()) dims.push_back({shape_[i], strides_[i]});
  Array copy = densely(Array(empty({different_elements()}), "copy", write));
  {
    const GilReleased released;
    convert_array(stored_, data_, dims, copy.data());
  }
  data_ = copy.data();
  strides_ = std::move(copy.strides_);
  stored_ = {}, numpy_ = false;  // object_ is what was converted
  owner_ = std::move(copy.object_);
}

}  // namespace fl::py
