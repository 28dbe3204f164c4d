#include "table/registry.h"

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>

#include "core/errors.h"
#include "core/operations.h"
#include "cost/accurate_cost.h"
#include "cost/cpu_cost.h"
#include "cost/gemv_cuda_cost.h"
#include "cost/ladder_cost.h"
#include "cost/narrow_product_cost.h"
#include "cost/reproducible_cost.h"
#include "cost/rules.h"
#include "cost/strict_cost.h"
#include "cost/tall_skinny_cost.h"
#include "cost/transpose_cuda_cost.h"
#include "cost/vectors_cost.h"
#include "plan/accumulation_depth.h"
#include "plan/accurate/mma_plan.h"
#include "plan/accurate/workspace.h"
#include "plan/gemv_cuda_plan.h"
#include "plan/ladder_plan.h"
#include "plan/narrow_plan.h"
#include "plan/reproducible_plan.h"
#include "plan/strict/strict_plan.h"
#include "plan/tall_skinny_plan.h"

namespace fl {

// 1. Declare every kernel of the table. A row whose function is missing is a link error that names it.
#define KERNEL(op, Args, name, ...) void op##_##name(const Args&, const Context&);
#include "table/kernels.def"

// 2. Tiles that are legal, and named after themselves.
template <const auto& TILE>
constexpr bool fits(Needs needs) {
  const int limit = least_shared_per_block(needs_row(needs).features);
  using Tile = std::remove_cvref_t<decltype(TILE)>;
  if constexpr (std::is_same_v<Tile, PipelinedTile>) return TILE.shared_bytes() <= limit;
  else if constexpr (std::is_same_v<Tile, ClusterSplitKTile>)
    return TILE.shared_bytes(false) <= limit && TILE.shared_bytes(true) <= limit;
  else {  // asynchronous copies or, where a device has none, through registers
    const int async_limit = std::max(limit, least_shared_per_block(feature_cp_async));
    return TILE.shared_bytes(true) <= async_limit && (needs != Needs::cuda || TILE.shared_bytes(false) <= limit);
  }
}
#define STRICT_SGEMM(tile, needs, ...)                                                                           \
  static_assert(tile.sound());                                                                                   \
  static_assert(fits<tile>(Needs::needs), "not every device with what the row needs has as much shared memory"); \
  static_assert(tile.name().is(#tile), "the name says what the tile is, by the grammar in kernels.def");
#define REPRODUCIBLE_SGEMM STRICT_SGEMM
#include "table/kernels.def"

// 3. GPU rows stay in the table of a CPU-only build, without a function, so that users see why they are not there.
#if FASTLINALG_CUDA
#define FL_CUDA_FN(fn) fn
#else
#define FL_CUDA_FN(fn) nullptr
#endif

// 4. What was measured of each row, as coefficients of its model.
#define KERNEL(op, Args, name, needs, legal, cost, ...) \
  struct op##_##name##_row;                             \
  using op##_##name##_cost = Model<cost>::Coefficients;
#include "table/kernels.def"
#define COST(kernel, chip, commit, shapes, residual, ...) \
  template <>                                             \
  inline constexpr kernel##_cost measured<kernel##_row, Chip::chip>{__VA_ARGS__};
#include "cost/measured.def"

// 5. One array per operation.
namespace {
template <class Args>
constexpr std::size_t kernel_count = 0
#define KERNEL(op, Of, ...) +std::is_same_v<Args, Of>
#include "table/kernels.def"
    ;

template <class Args>
constexpr auto rows_of() {
  std::array<Kernel<Args>, kernel_count<Args>> rows{};
  std::size_t i = 0;
#define FL_ROW(op, Of, name, needs, legal, cost, depth, workspace, traits, blurb, fn)               \
  if constexpr (std::is_same_v<Args, Of>)                                                           \
    rows[i++] = {#name, Needs::needs, legal,  cost_on<op##_##name##_row, cost>,   workspace, blurb, \
                 fn,    depth,        traits, cost_model<op##_##name##_row, cost>};
#define KERNEL(op, Of, name, ...) FL_ROW(op, Of, name, __VA_ARGS__, op##_##name)
#define CUDA_KERNEL(op, Of, name, ...) FL_ROW(op, Of, name, __VA_ARGS__, FL_CUDA_FN(op##_##name))
#include "table/kernels.def"
  return rows;
}
template <class Args>
constexpr auto kernel_rows = rows_of<Args>();
}  // namespace

template <class Args>
std::span<const Kernel<Args>> kernels() {
  return kernel_rows<Args>;
}

template <class Args>
const Kernel<Args>* find_or_null(std::string_view name) {
  for (const auto& kernel : kernels<Args>())
    if (name == kernel.name) return &kernel;
  return nullptr;
}

template <class Args>
const Kernel<Args>& find(std::string_view name) {
  if (const Kernel<Args>* const kernel = find_or_null<Args>(name)) return *kernel;
  throw InvalidValue("unknown " + std::string(Operation<Args>::name) + " kernel '" + std::string(name) + "'");
}

#define FL_INSTANTIATE(Args)                                   \
  template std::span<const Kernel<Args>> kernels();            \
  template const Kernel<Args>* find_or_null(std::string_view); \
  template const Kernel<Args>& find(std::string_view);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
