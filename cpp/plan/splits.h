// Splits of operands that outlive a product. The rows of precision="accurate" cut both operands into slices before they
// multiply; whoever multiplies an operand several times can give them memory where its split stays.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"

namespace fl {

template <class Args>
struct Kernel;

// Where a product finds the split of one operand, or leaves it. A "line" is a row of A or a column of B.
struct KeptSplit {
  char* memory = nullptr;  // null: the split is made in the workspace, for this product alone. 256-byte aligned
  std::size_t bytes = 0;
  bool ready = false;     // it is there; else the product makes it
  std::size_t apart = 0;  // bytes from one problem of a batch to the next; 0 if they share the operand
  // Products of some of the lines can share a split of all of them, laid out in the one way that suits them all.
  bool shared = false;
  int64_t lines = 0;  // of all
  int64_t first = 0;  // of the product's lines, a multiple of SPLIT_UNIT
};
constexpr int64_t SPLIT_UNIT = 64;

struct KeptSplits {
  KeptSplit a, b;
};

// What to keep of an operand of such products, still without memory; of 0 bytes if this row does not split it.
enum class Side { a, b };
KeptSplit split_to_keep(const Kernel<SgemmArgs>& row, const SgemmArgs& p, Side side);
KeptSplit split_to_share(const Kernel<SgemmArgs>& row, const SgemmArgs& p, Side side);

}  // namespace fl
