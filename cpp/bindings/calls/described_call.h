// Calls as benchmarks/kernel_times.py and the command line write them down: sizes, transposes, paddings and offsets.
#pragma once

#include <array>
#include <cstdint>

#include "bindings/calls/options.h"
#include "core/operations.h"

namespace fl::py {

// Operands at such addresses, in floats behind aligned ones: rules read no element.
alignas(128) inline float dummy_operands[3][32];

// `pads` and `offsets` of the two operands and the result. Of sgemv, m and n are those of the stored matrix.
struct DescribedCall {
  int64_t m, n, k, batch = 1;
  bool trans_a = false, trans_b = false;
  std::array<int64_t, 3> pads = {}, offsets = {};
  const char* precision = "accurate";

  const float* operand(int i) const { return dummy_operands[i] + offsets[std::size_t(i)] % 32; }
  float* result() const { return dummy_operands[2] + offsets[2] % 32; }
  int64_t batch_stride(int64_t elements) const { return batch > 1 ? elements : 0; }
};

inline void set_args(SgemmArgs& p, const DescribedCall& s) {
  const int64_t lda = (s.trans_a ? s.m : s.k) + s.pads[0], ldb = (s.trans_b ? s.k : s.n) + s.pads[1],
                ldc = s.n + s.pads[2];
  p = {.m = s.m,
       .n = s.n,
       .k = s.k,
       .batch = s.batch,
       .a = {s.operand(0), s.trans_a ? 1 : lda, s.trans_a ? lda : 1, s.batch_stride((s.trans_a ? s.k : s.m) * lda)},
       .b = {s.operand(1), s.trans_b ? 1 : ldb, s.trans_b ? ldb : 1, s.batch_stride((s.trans_b ? s.n : s.k) * ldb)},
       .c = {s.result(), ldc, 1, s.batch_stride(s.m * ldc)},
       .precision = parse_precision(s.precision)};
}
inline void set_args(SgemvArgs& p, const DescribedCall& s) {
  const int64_t lda = s.n + s.pads[0], rows = s.trans_a ? s.n : s.m, columns = s.trans_a ? s.m : s.n;
  p = {.m = rows,
       .n = columns,
       .batch = s.batch,
       .a = {s.operand(0), s.trans_a ? 1 : lda, s.trans_a ? lda : 1, s.batch_stride(s.m * lda)},
       .x = {s.operand(1), 1, s.batch_stride(columns)},
       .y = {s.result(), 1, s.batch_stride(rows)}};
}
inline void set_args(TransposeArgs& p, const DescribedCall& s) {
  const int64_t lda = s.n + s.pads[0], ldb = s.m + s.pads[2];
  p = {.m = s.m,
       .n = s.n,
       .batch = s.batch,
       .a = {s.operand(0), lda, 1, s.batch_stride(s.m * lda)},
       .b = {s.result(), ldb, 1, s.batch_stride(s.n * ldb)}};
}

template <class Args>
Args args_of(const DescribedCall& call) {
  Args p;
  set_args(p, call);
  return p;
}
// The same in the memory of a device, which is not there yet.
template <class Args>
Args layout_of(const DescribedCall& call) {
  Args p = args_of<Args>(call);
  for_each_operand(p, [](auto& view) { view.data = nullptr; });
  return p;
}

}  // namespace fl::py
