// NumPy arrays as the library sees them: a checked float32 view with strides in elements.
//
// The buffer protocol is used rather than DLPack: it takes read-only arrays of every NumPy version, and it is several times
// cheaper, which decides the cost of a call on small operands.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fl::py {

namespace nb = nanobind;

inline constexpr int max_dims = 64;  // NumPy's own limit

class Array {
 public:
  enum Access { read, write };

  Array() = default;
  // Throws InvalidType (not an array, not float32) or InvalidValue (read-only for `write`), naming the argument.
  // An input that is not aligned to 4 bytes is replaced by an aligned copy; an output is marked misaligned().
  Array(nb::handle object, const char* name, Access access);
  ~Array() { release(); }
  Array(Array&& other) noexcept;
  Array& operator=(Array&& other) noexcept;

  float* data() const { return static_cast<float*>(buffer_.buf); }
  int ndim() const { return buffer_.ndim; }
  int64_t shape(int i) const { return buffer_.shape[i]; }
  int64_t stride(int i) const { return strides_[i]; }  // in elements
  std::span<const Py_ssize_t> shape() const { return {buffer_.shape, size_t(buffer_.ndim)}; }
  nb::handle object() const { return object_; }
  bool misaligned() const { return misaligned_; }

  bool same_view(const Array& other) const;  // the same elements in the same order
  bool overlaps(const Array& other) const;   // by address range: may say yes where strides interleave
  bool overlaps_itself() const;              // two indices may share an element

 private:
  void acquire(nb::handle object, const char* name, Access access);
  void release();

  Py_buffer buffer_{};
  nb::object object_;
  bool misaligned_ = false;
  int64_t strides_[max_dims];
};

using Shape = std::vector<int64_t>;

inline std::string text(nb::handle object) { return nb::str(object).c_str(); }  // str(object)

std::string to_string(std::span<const Py_ssize_t> shape);  // "(2, 3)", "(4,)"
std::string to_string(const Shape& shape);

nb::object empty(const Shape& shape);                  // a new float32 array
void copy_into(nb::handle target, nb::handle source);  // numpy.copyto

}  // namespace fl::py
