// Arrays as the library sees them: a checked float32 view with strides in elements.
//
// NumPy's own arrays of native float32 are read by their fields (numpy_fields.h), its others by the buffer protocol
// rather than DLPack: it takes read-only arrays of every NumPy version, and it is several times cheaper. That decides
// the cost of a call on small operands. All others are read in foreign.cpp.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bindings/arrays/libraries.h"
#include "core/element.h"

namespace fl::py {

inline constexpr int max_dims = 64;  // NumPy's own limit

using Shape = std::vector<int64_t>;
class CallLocation;

// Sizes or strides. Lists of arrays take less memory without room for all that an array may have.
class Dims {
 public:
  void make_room(int count) {  // what is there stays
    if (count <= few || more_) return;
    more_ = std::make_unique<int64_t[]>(size_t(max_dims));
    std::copy_n(own_, few, more_.get());
  }
  int64_t* data() { return more_ ? more_.get() : own_; }
  const int64_t* data() const { return more_ ? more_.get() : own_; }
  int64_t& operator[](int i) { return data()[i]; }
  int64_t operator[](int i) const { return data()[i]; }

 private:
  static constexpr int few = 6;
  int64_t own_[few] = {};
  std::unique_ptr<int64_t[]> more_;
};

class Array {
 public:
  enum Access { read, write };

  Array() { buffer_.obj = nullptr; }  // no `= default`: `Array x{}` would then fill everything with zeros
  // Throws InvalidType (not an array, not float32) or InvalidValue (read-only for `write`, elsewhere than the other
  // operands), naming the argument. A NumPy input that is not aligned to 4 bytes is replaced by an aligned copy, a
  // NumPy output is marked misaligned(). Where the location says that other types are converted, an input may be
  // `stored` as one, in device memory in 16 bits alone, and data() is then no address to read from.
  Array(nb::handle object, const char* name, Access access, CallLocation& location);
  Array(nb::handle object, const char* name, Access access);  // a NumPy array
  // Memory in C order that somebody else keeps.
  Array(float* data, const Shape& shape);
  // A result in C order that the library of the location has just made.
  Array(nb::object result, void* data, const Shape& shape, const CallLocation& location);
  ~Array() { release(); }
  Array(Array&& other) noexcept;
  Array& operator=(Array&& other) noexcept;

  float* data() const { return data_; }
  int ndim() const { return ndim_; }
  int64_t shape(int i) const { return shape_[i]; }
  int64_t stride(int i) const { return strides_[i]; }  // in units of stride_unit() bytes
  int64_t stride_unit() const { return misaligned_ ? 1 : int64_t(size_of(stored_.element)); }
  std::span<const int64_t> shape() const { return {shape_.data(), size_t(ndim_)}; }
  nb::handle object() const { return object_; }
  bool is_numpy() const { return numpy_; }
  bool misaligned() const { return misaligned_; }
  const Stored& stored() const { return stored_; }

  void convert();  // replaces what is stored in host memory as another type by a float32 copy; the rest stays as it is

  Array view() const;  // the same elements, of the same object
  bool join_rows();    // makes it the matrix of all its rows; false if they are not evenly spaced

  std::vector<int> farthest_first() const;  // the dimensions along which elements differ
  // `memory`, of so many elements, as an array of this shape, in the order of this one and without gaps.
  int64_t different_elements() const;
  Array densely(Array&& memory) const;

  // Makes it the view of this shape that NumPy's rules for broadcasting give; false if they give none.
  bool broadcast_to(std::span<const int64_t> shape);

  // For another call on the same array: says to its location where it lies. Libraries whose current stream is not known
  // have to be asked for the array again instead: they order their work when they are.
  void join(const char* name, CallLocation& location) const;
  bool has_to_be_read_again() const;
  void require_writeable(const char* name) const;  // still: NumPy lets a caller change that
  void hold();                                     // keeps the memory itself: a torch tensor may be given another

  // The bytes from the first element to the last; empty arrays have none.
  struct Extent {
    const char *first = nullptr, *last = nullptr;
    bool overlaps(const Extent& other) const {
      return first && other.first && first <= other.last && other.first <= last;
    }
  };
  Extent extent() const;
  bool same_view(const Array& other) const;  // the same elements in the same order
  bool overlaps(const Array& other) const;   // by address range: may say yes where strides interleave
  bool overlaps_itself() const;              // two indices may share an element

 private:
  void acquire(nb::handle object, const char* name, Access access, const CallLocation* location);
  void acquire_buffer(nb::handle object, const char* name, Access access, const CallLocation* location);
  void acquire_numpy_copy(nb::handle object, const char* name);
  bool acquire_stored(nb::handle object, const CallLocation& location);
  void set_numpy(Element element, void* data, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides);
  void acquire_foreign(nb::handle object, const char* name, Access access, CallLocation& location);
  void acquire_torch(nb::handle object, const char* name, Access access, CallLocation& location);
  void acquire_cupy(nb::handle object, const char* name, Access access, CallLocation& location);
  void acquire_exported(nb::handle object, const char* name, Access access, CallLocation& location);
  void acquire_converted(nb::handle object, const char* name, const std::string& dtype, const std::string& cast,
                         Access access, CallLocation& location);
  void acquire_interface(nb::handle object, const char* name, Access access, CallLocation& location);
  bool takes(dl::DataType type, Access access, const CallLocation& location);  // as its elements are stored
  void set(const dl::Tensor& tensor, const char* name);                        // checks its alignment
  void release();
  void set_ndim(int ndim) {
    ndim_ = ndim;
    shape_.make_room(ndim), strides_.make_room(ndim);
  }

  float* data_ = nullptr;
  int ndim_ = 0;
  bool misaligned_ = false, numpy_ = false;
  Stored stored_;
  Py_buffer buffer_;  // held if it has an obj
  Library library_;
  int device_ = -1;  // host
  nb::object object_;
  nb::object owner_;  // of what was borrowed from another library: a DLPack capsule, a tensor
  Dims shape_, strides_;
};

// str(object). What cannot be written in UTF-8 (a lone surrogate) is a UnicodeEncodeError.
inline std::string text(nb::handle object) {
  const nb::str string(object);
  const char* const utf8 = string.c_str();
  if (!utf8) throw nb::python_error();
  return utf8;
}

std::string shown(nb::handle object);                   // repr(object) in a message: shortened if it is long
std::string to_string(std::span<const int64_t> shape);  // "(2, 3)", "(4,)"
std::string to_string(double value);                    // "0.5", "1e-09"

bool names_float32(nb::handle dtype);  // whether it is what NumPy takes for float32, or torch.float32
nb::object to_tuple(const Shape& shape);
nb::object empty(const Shape& shape);                  // a new float32 NumPy array
void copy_into(nb::handle target, nb::handle source);  // numpy.copyto
void report_overflow();                                // as NumPy reports one in a cast, np.errstate included
bool is_numpy_type(nb::handle type);
bool is_numpy_bool(nb::handle object);

// Masked arrays and subclasses of ndarray with an __array_ufunc__ of their own: units, say.
void refuse_own_meaning(nb::handle object, const char* name);
[[noreturn]] void not_an_array(nb::handle object, const char* name);
[[noreturn]] void refuse_misaligned(const char* name, int64_t bytes);
bool holds_reals(nb::handle object, const std::string& dtype);  // `dtype` where the object itself does not say
[[noreturn]] void wrong_dtype(nb::handle object, const char* name, const std::string& dtype, const std::string& cast,
                              const CallLocation* location);

}  // namespace fl::py
