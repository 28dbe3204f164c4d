// The rules the kernel table refers to: what a kernel can compute (legal).
//
// A legality rule returns nullptr, or what the operands lack as the end of the sentence "this kernel needs ...".
// What a kernel is expected to take is said by models (the other files of this folder) and by measured.def.
//
// Dispatch remembers recent choices, so a rule may depend on nothing but the call, where its addresses lie in a line of
// 128 bytes, the number of threads and what stays as it is while the process lives.
#pragma once

#include <cstddef>

#include "core/layout.h"
#include "core/problem.h"

namespace fl {

// ---------------------------------------------------------------- legality
template <class Args>
const char* any(const Args&) {
  return nullptr;
}

// What reads its operands where they lie and in no other type.
template <class Args>
const char* float32_operands(const Args& p) {
  return p.stored[0].converted() || p.stored[1].converted() ? "float32 operands" : nullptr;
}

// What reads the larger operand in any type.
const char* float32_rows(const SgemmArgs& p);

// A and B in row- or column-major order, C row-major: what the BLAS can express.
const char* blas_layout(const SgemmArgs& p);
const char* blas_layout_aligned16(const SgemmArgs& p);
const char* blas_layout(const SgemvArgs& p);
const char* blas_layout_aligned16(const SgemvArgs& p);
// The same, or A in 16 bits where the kernel adds up in the order that it has on the float32 copy.
const char* lines_of_any_type(const SgemvArgs& p);
const char* rows_of_any_type(const SgemvArgs& p);
const char* rows_of_any_type_aligned16(const SgemvArgs& p);
const char* out_of_place(const TransposeArgs& p);
const char* contiguous_rows(const TransposeArgs& p);  // the one rule of the GPU that allows a transpose in place
const char* row_major_both(const TransposeArgs& p);
const char* row_major_aligned16(const TransposeArgs& p);
const char* row_major_aligned8(const TransposeArgs& p);

template <class Args>
std::size_t no_workspace(const Args&) {
  return 0;
}

}  // namespace fl
