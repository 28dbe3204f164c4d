// The operands of a call on host memory, in the terms of pack.h, and where they lie on the device: one after the other
// in one block.
#pragma once

#include <array>
#include <cstddef>

#include "cuda/launch/pack.h"
#include "transfer/panel_plan.h"

namespace fl::cuda {

struct Input {
  Lines<const float> host;
  const float** device = nullptr;  // the pointer in the device arguments
  bool by_columns = false;         // its lines are the columns of the matrix
  const float** also = nullptr;    // of another operand that has the same memory
};
struct Output {
  Lines<float> host;
  float** device = nullptr;
  bool read = false;  // beta != 0: goes to the device too
};
struct Operands {
  std::array<Input, 2> inputs;  // the second is empty for a transpose, and for a symmetric product
  Output output;
};

// `layout` is device_layout(host); the result points into it, for the caller to fill in the device pointers.
Operands operands(const SgemmArgs& host, SgemmArgs& layout);
Operands operands(const SgemvArgs& host, SgemvArgs& layout);
Operands operands(const TransposeArgs& host, TransposeArgs& layout);

// A block of a matrix in terms of its lines.
template <class T>
Piece piece_of(const Lines<T>& operand, bool by_columns, const Block& block) {
  const int64_t first = by_columns ? block.col : block.row, count = by_columns ? block.cols : block.rows;
  return {block.problem * operand.lines + first, (block.problems - 1) * operand.lines + count,
          by_columns ? block.row : block.col, by_columns ? block.rows : block.cols};
}

// What shares a block of device memory begins at multiples of this many bytes, as every allocation does.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

template <class T>
std::size_t device_bytes(const Lines<T>& operand);  // throws OutOfMemory for broadcast views larger than any memory
std::size_t device_bytes(const Operands& operands);

// Sets the device pointers. Returns the end of the operands; what follows is the workspace.
char* place(const Operands& operands, char* memory);

}  // namespace fl::cuda
