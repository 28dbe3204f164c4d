// Prepacked operands: operands of products that were split into terms once, for many products. The kernels of
// precision="accurate" split both operands before they multiply; whoever multiplies an operand several times can give
// them memory where what the split pass makes of it stays.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"
#include "plan/terms.h"

namespace fl {

// From `begin` to before `end`.
struct LineRange {
  int64_t begin = 0, end = INT64_MAX;
  bool empty() const { return begin >= end; }
};

// Where a product finds one operand as terms, or leaves it. A "line" is a row of A or a column of B.
struct PrepackedOperand {
  char* memory = nullptr;  // null: the split pass writes to the workspace, for this product alone. 256-byte aligned
  std::size_t bytes = 0;
  LineRange missing = {};  // of the product's lines: those whose terms are not there yet, and which it makes
  std::size_t apart = 0;   // bytes from one problem of a batch to the next; 0 if they share the operand
  // Products of some of the lines can share the terms of all of them, in the one layout that suits all tiles.
  bool shared = false;
  int64_t lines = 0;  // of all
  int64_t first = 0;  // of the product's lines, a multiple of PREPACKED_UNIT

  bool ready() const { return missing.empty(); }
  void set_ready(bool ready) { missing = ready ? LineRange{0, 0} : LineRange{}; }
};
constexpr int64_t PREPACKED_UNIT = 64;

struct PrepackedOperands {
  PrepackedOperand a, b;
};

enum class Side { a, b };

// Of which operands the terms are there.
struct ReadySides {
  bool a = false, b = false;
  bool operator==(const ReadySides&) const = default;
};

}  // namespace fl
