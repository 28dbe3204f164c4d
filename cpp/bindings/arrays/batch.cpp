#include "bindings/arrays/batch.h"

#include <algorithm>

#include "core/errors.h"
#include "core/text.h"

namespace fl::py {

Batch::Batch(std::initializer_list<Operand> operands, const char* function) {
  int dims = 0;
  for (const auto& x : operands) dims = std::max(dims, x.leading);
  sizes_.assign(size_t(dims), 1);
  for (const auto& x : operands) {
    for (int d = 0; d < x.leading; ++d) {
      int64_t& size = sizes_[size_t(dims - x.leading + d)];
      const int64_t own = x.array->shape(d);
      if (size == 1) size = own;
      if (own != 1 && own != size) {
        const std::string shapes = joined(operands, " and ", [](const auto& y) { return to_string(y.array->shape()); });
        throw InvalidValue(std::string(function) + ": the leading dimensions of operands with shapes " + shapes +
                           " cannot be broadcast together");
      }
    }
  }
  for (const auto& x : operands) {
    auto& strides = strides_[operands_++];
    strides.assign(size_t(dims), 0);
    for (int d = 0; d < x.leading; ++d)
      if (x.array->shape(d) != 1) strides[size_t(dims - x.leading + d)] = x.array->stride(d);
  }
}

void Batch::add(const Array& x) {
  auto& strides = strides_[operands_++];
  strides.resize(sizes_.size());
  for (size_t d = 0; d < sizes_.size(); ++d) strides[d] = x.shape(int(d)) == 1 ? 0 : x.stride(int(d));
}

void Batch::merge() {
  size_t kept = 0;
  for (size_t d = 0; d < sizes_.size(); ++d) {
    if (sizes_[d] == 1) continue;
    bool joins = kept > 0;
    for (int o = 0; o < operands_ && joins; ++o) joins = strides_[o][kept - 1] == strides_[o][d] * sizes_[d];
    if (joins) {
      sizes_[kept - 1] *= sizes_[d];
      for (int o = 0; o < operands_; ++o) strides_[o][kept - 1] = strides_[o][d];
      continue;
    }
    sizes_[kept] = sizes_[d];
    for (int o = 0; o < operands_; ++o) strides_[o][kept] = strides_[o][d];
    ++kept;
  }
  sizes_.resize(kept);
  for (int o = 0; o < operands_; ++o) strides_[o].resize(kept);
}

}  // namespace fl::py
