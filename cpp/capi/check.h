// What a C caller can get wrong: arguments, and structs, which later versions make longer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "core/element.h"
#include "core/errors.h"

namespace fl {

// The arguments of one function, under the names that its messages use.
class Check {
 public:
  // `described`: nothing is computed, so operands may be NULL.
  explicit Check(const char* function, bool described = false) : function_(function), described_(described) {}

  [[noreturn]] void refuse(const std::string& what) const { throw InvalidValue(std::string(function_) + ": " + what); }

  void sizes(std::initializer_list<std::pair<const char*, int64_t>> all) const {
    for (const auto& [name, value] : all)
      if (value < 0) refuse(std::string(name) + " must be at least 0, got " + std::to_string(value));
  }
  void flag(const char* name, int value) const {
    if (value != 0 && value != 1) refuse(std::string(name) + " must be 0 or 1, got " + std::to_string(value));
  }
  // `batch` matrices that start `stride` elements apart.
  void matrix(const char* name, const float* data, int64_t rows, int64_t cols, int64_t ld, int64_t batch = 1,
              int64_t stride = 0, Element element = Element::float32) const {
    const int64_t least = cols > 1 ? cols : 1;
    if (ld < least)
      refuse(std::string("ld") + name + " must be at least " + std::to_string(least) + ", the length of a row of " +
             name + " as stored, got " + std::to_string(ld));
    not_negative(name, stride);
    if (rows == 0 || cols == 0 || batch == 0) return;
    memory(name, data, extent(batch, stride) + extent(rows, ld) + cols, element);
  }
  void vector(const char* name, const float* data, int64_t size, int64_t inc, int64_t batch, int64_t stride,
              Element element = Element::float32) const {
    if (inc == 0) refuse(std::string("inc") + name + " must not be 0");
    not_negative(name, stride);
    if (size > 0 && batch > 0) memory(name, data, extent(batch, stride) + extent(size, magnitude(inc)) + 1, element);
  }
  void separate_vectors(const char* name, int64_t size, int64_t inc, int64_t batch, int64_t stride) const {
    separate_results(name, size, 1, magnitude(inc), batch, stride, "inc");
  }
  void aligned(const char* name, const float* data, Element element = Element::float32) const {
    if (reinterpret_cast<uintptr_t>(data) % size_of(element) != 0)
      refuse(std::string(name) + " is not aligned to " + std::to_string(size_of(element)) + " bytes");
  }
  // No two results of a batch may share elements: either each ends before the next begins, or they lie side by side in
  // rows that are long enough for all of them.
  void separate_results(const char* name, int64_t rows, int64_t cols, int64_t ld, int64_t batch, int64_t stride,
                        const char* step = "ld") const {
    if (batch < 2 || rows == 0 || cols == 0) return;
    const bool in_turn = stride >= extent(rows, ld) + cols;
    const bool side_by_side = stride >= cols && ld >= extent(batch, stride) + cols;
    if (!in_turn && !side_by_side)
      refuse("the " + std::to_string(batch) + " results of " + std::to_string(rows) + " x " + std::to_string(cols) +
             " would overlap with stride_" + name + " " + std::to_string(stride) + " and " + step + name + " " +
             std::to_string(ld));
  }

 private:
  static __int128 extent(int64_t count, __int128 step) { return (count - 1) * step; }
  static int64_t magnitude(int64_t inc) {  // of INT64_MIN the largest there is: no memory is as large
    return inc >= 0 ? inc : inc == std::numeric_limits<int64_t>::min() ? std::numeric_limits<int64_t>::max() : -inc;
  }

  void not_negative(const char* name, int64_t stride) const {
    if (stride < 0) refuse(std::string("stride_") + name + " must be at least 0, got " + std::to_string(stride));
  }

  void memory(const char* name, const float* data, __int128 elements, Element element) const {
    if (!data && !described_) refuse(std::string(name) + " is NULL, but has elements");
    aligned(name, data, element);
    if (elements > std::numeric_limits<int64_t>::max() / int64_t(sizeof(float)))
      refuse(std::string(name) + " would be larger than the address space");
  }

  const char* function_;
  bool described_;
};

// ---------------------------------------------------------------- structs
// struct_size says which version the caller was built with.
//
// `first_size` is that of the first version with this struct, `init` the macro to begin with. What is beyond `largest`
// nobody has set: it is what memory held.
template <class Struct>
void check_struct_size(const Check& check, const char* name, const char* init, const Struct& given,
                       std::size_t first_size) {
  constexpr std::size_t largest = std::size_t(1) << 24;
  if (given.struct_size < first_size || given.struct_size > largest)
    check.refuse(std::string(name) + "->struct_size is " + std::to_string(given.struct_size) +
                 ", this library knows sizes from " + std::to_string(first_size) + " to " + std::to_string(largest) +
                 "; start from " + init);
}

// What the caller knows of it; the rest of `initial` stays. A newer caller must not ask for what this library lacks.
template <class Struct>
Struct read_struct(const Check& check, const char* name, const char* init, const Struct& given, std::size_t first_size,
                   const Struct& initial) {
  check_struct_size(check, name, init, given, first_size);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&given);
  for (std::size_t i = sizeof(Struct); i < given.struct_size; ++i)
    if (bytes[i] != 0)
      check.refuse(std::string(name) + " sets a field that this library, which knows " +
                   std::to_string(sizeof(Struct)) + " bytes of it, does not have");
  Struct known = initial;
  std::memcpy(&known, &given, std::min(given.struct_size, sizeof(Struct)));
  return known;
}

// As much of `values` as the caller has room for. What a newer caller has beyond that is 0.
template <class Struct>
void write_struct(const Check& check, const char* name, const char* init, Struct* target, std::size_t first_size,
                  Struct values) {
  if (!target) check.refuse(std::string(name) + " is NULL");
  check_struct_size(check, name, init, *target, first_size);
  values.struct_size = target->struct_size;
  const std::size_t known = std::min(target->struct_size, sizeof(Struct));
  std::memset(reinterpret_cast<unsigned char*>(target) + known, 0, target->struct_size - known);
  std::memcpy(target, &values, known);
}

}  // namespace fl
