// How a call on operands in host memory is cut up: which parts of the operands cross the link in which order, and which
// part of the result is computed as soon as they are there. A function of the call alone, never of timing, so that a
// result does not depend on what else the machine does. cuda/pipeline/pipeline.h carries a plan out;
// docs/notes/host_pipeline.md tells how the two work together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <tuple>
#include <vector>

#include "core/operations.h"
#include "table/registry.h"

namespace fl {

// Rows and columns of one matrix in each of `problems` problems; whole matrices if there are several problems. A vector
// is a matrix of one row.
struct Block {
  int64_t problem = 0, problems = 1;
  int64_t row = 0, rows = 0, col = 0, cols = 0;

  int64_t elements() const { return problems * rows * cols; }
  bool operator==(const Block&) const = default;
};

constexpr Block mirror_image(const Block& block) {
  return {block.problem, block.problems, block.col, block.cols, block.row, block.rows};
}

enum class OperandRole { a, b, c };  // of a SgemvArgs: the matrix, x, y; of a TransposeArgs: a, none, b

template <class Args>
constexpr bool has_b = std::tuple_size_v<decltype(Operation<Args>::inputs)> == 2;

// Whether all problems of a batch share the operand.
template <class Args>
bool is_shared(const Args& p, OperandRole role) {
  if (role == OperandRole::a) return (p.*std::get<0>(Operation<Args>::inputs)).bs == 0;
  if constexpr (has_b<Args>)
    if (role == OperandRole::b) return (p.*std::get<1>(Operation<Args>::inputs)).bs == 0;
  return role == OperandRole::b;
}

struct PanelLoad {
  OperandRole operand;
  Block block;
  int64_t line = 0;  // floats of a piece of a line in memory; 0 if all of a line is in the block
};

template <class Args>
struct PanelStep {
  Block block;                           // of the result
  std::size_t loads = 0;                 // how many loads have to have arrived
  const Kernel<Args>* kernel = nullptr;  // computes sub_problem(call, block)
  double us = 0;                         // its cost
  int64_t line = 0;                      // as of a load
  bool mirrored = false;                 // of a symmetric result: mirror_image(block) is made of it, and stored too
};

// The kernel for a sub-problem, and what it is expected to take on a device.
template <class Args>
struct KernelFor {
  std::function<const Kernel<Args>&(const Args&)> choose;
  const DeviceSpec* device = nullptr;
  const Kernel<Args>& operator()(const Args& p) const { return choose(p); }
  double us(const Kernel<Args>& kernel, const Args& p) const { return kernel.cost(p, *device); }
  double saved_us(const Kernel<Args>& kernel, const Args& p, ReadySides ready) const {
    return kernel.model.saved_by_prepacked ? kernel.model.saved_by_prepacked(p, ready, *device) : 0;
  }
};

template <class Args>
struct PanelPlan {
  std::vector<PanelLoad> loads;
  std::vector<PanelStep<Args>> steps;
  KernelFor<Args> kernel_for;  // for other cuts, if the operands do not fit on the device
};

template <class Args>
const PanelStep<Args>& largest_step(const PanelPlan<Args>& plan) {
  const auto smaller = [](const auto& x, const auto& y) { return x.block.elements() < y.block.elements(); };
  return *std::max_element(plan.steps.begin(), plan.steps.end(), smaller);
}

// A part of a call: some of its problems whole, or of one problem rows and columns of what a kernel
// computes (a row of op(A), of the vector y, of a transpose's operand), and a range of the sums that they are made of.
// A matrix-vector product has one column; a transpose has no sums.
struct Part {
  int64_t problem = 0, problems = 1;
  int64_t row = 0, rows = 0, col = 0, cols = 1, depth = 0, depths = 1;
};
inline Part whole(const SgemmArgs& p) { return {.problems = p.batch, .rows = p.m, .cols = p.n, .depths = p.k}; }
inline Part whole(const SgemvArgs& p) { return {.problems = p.batch, .rows = p.m, .depths = p.n}; }
inline Part whole(const TransposeArgs& p) { return {.problems = p.batch, .rows = p.m, .cols = p.n}; }

// What a part reads of an operand, or writes of the result.
template <class Args>
Block block_of(const Args& p, OperandRole role, const Part& part);

// The call that computes a part, or one block of the result. Null pointers stay null.
template <class Args>
Args sub_problem(const Args& p, const Part& part);
template <class Args>
Args sub_problem(const Args& p, const Block& block);

// `layout` has the strides that the operands get on the device. Of a symmetric product B has the memory of A, so only A
// is loaded.
template <class Args>
FL_EXPORT PanelPlan<Args> plan_panels(const Args& layout, const KernelFor<Args>& kernel_for);

// ---------------------------------------------------------------- the link between host memory and a device
// Both directions at once, each at this speed.
struct HostLink {
  double call_us = 0;       // of a call that copies next to nothing
  double bytes_per_us = 1;  // of a call that copies much
};

// Plans are compared by fixed figures, not by measured ones: they must not depend on timing. PCIe 5 with 16 lanes does
// 48 GB/s each way, both ways at once; an H200's did 40 to 50 while the workers were busy too. Panels and shares go by
// the lower figure, tiles out of core by the other, as does a link that has not been used: one figure for all would cut
// calls in another way.
constexpr double link_bytes_per_us = 48e3, busy_link_bytes_per_us = 40e3;
constexpr HostLink nominal_link{10, busy_link_bytes_per_us};
constexpr double panel_step_us = 6, tile_step_us = 10;  // of a step: its launches and events

// Microseconds that a call by this plan is expected to take.
template <class Args>
double estimate_us(const PanelPlan<Args>& plan, const HostLink& link);

// Calls on fewer bytes are not cut up: what an overlap could gain is less than what a second product costs.
constexpr int64_t smallest_cut_bytes = 1 << 20;

}  // namespace fl
