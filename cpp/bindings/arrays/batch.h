// The leading dimensions of stacked operands, broadcast as NumPy does it.
#pragma once

#include <vector>

#include "bindings/arrays/array.h"

namespace fl::py {

class Batch {
 public:
  static constexpr int max_operands = 4;

  // One operand whose first `leading` dimensions are batch dimensions.
  struct Operand {
    const Array* array;
    int leading;
  };
  Batch(std::initializer_list<Operand> operands, const char* function);  // InvalidValue if they do not broadcast
  Shape shape_with(std::initializer_list<int64_t> sizes) const {         // behind the leading dimensions
    Shape shape = sizes_;
    shape.insert(shape.end(), sizes);
    return shape;
  }
  void add(const Array& x);  // an operand that has exactly these leading dimensions

  // Calls run(count, offsets, strides) for as few strided runs as describe the whole batch; offsets and strides have
  // one entry per operand, in elements. An empty batch makes one call with count 0: names and devices are checked.
  template <class Run>
  void for_each_run(Run&& run) {
    merge();
    const int outer = int(sizes_.size()) - 1;
    int64_t offsets[max_operands] = {}, inner[max_operands] = {};
    for (int64_t size : sizes_)
      if (size == 0) return run(int64_t{0}, offsets, inner);
    if (outer < 0) return run(int64_t{1}, offsets, inner);
    for (int o = 0; o < operands_; ++o) inner[o] = strides_[o][outer];
    std::vector<int64_t> index(size_t(outer), 0);
    for (;;) {
      run(sizes_[outer], offsets, inner);
      int d = outer - 1;
      for (; d >= 0; --d) {  // an odometer over the outer dimensions
        for (int o = 0; o < operands_; ++o) offsets[o] += strides_[o][d];
        if (++index[d] < sizes_[d]) break;
        for (int o = 0; o < operands_; ++o) offsets[o] -= strides_[o][d] * sizes_[d];
        index[d] = 0;
      }
      if (d < 0) return;
    }
  }

 private:
  void merge();  // drops dimensions of size 1 and joins neighbours that step evenly in every operand

  int operands_ = 0;
  Shape sizes_;
  std::vector<int64_t> strides_[max_operands];
};

}  // namespace fl::py
