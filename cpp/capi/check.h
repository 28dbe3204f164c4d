// What a C caller can get wrong.
#pragma once

#include <cstdint>
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

}  // namespace fl
