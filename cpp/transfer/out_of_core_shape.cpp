#include "transfer/out_of_core_shape.h"

#include <algorithm>
#include <vector>

#include "core/operations.h"
#include "plan/reproducible_plan.h"

namespace fl {
namespace {

constexpr double slice_bytes = 64 << 20;
constexpr int64_t most_slices = 16, least_slice_rows = 256;
constexpr double most_tiles = 1 << 18;  // each takes about 1 KB of host memory: with more, that would run out instead
constexpr int64_t group_count = 8;      // groups of a batch: so that copies and products of different groups overlap

constexpr bool sliced(const SgemmArgs&) { return true; }
template <class Args>
constexpr bool sliced(const Args&) {
  return false;
}

// Bytes on the device: lines are padded to at most 32 floats, slots to 256 bytes.
double slot_bytes(int64_t lines, int64_t length, int64_t problems) {
  return 4.0 * double(problems) * double(lines) * double(length + 31) + 256;
}
template <class View>
double slot_bytes(const View& view, const Block& block) {
  bool by_rows = true;
  if constexpr (requires { view.cs; }) by_rows = row_major(view);
  return slot_bytes(by_rows ? block.rows : block.cols, by_rows ? block.cols : block.rows, block.problems);
}
struct SlotBytes {
  double input[2], output;
};
template <class Args>
SlotBytes slot_bytes(const Args& p, const OutOfCoreShape& s) {
  using Traits = Operation<Args>;
  const Part tile = largest_tile(s);
  SlotBytes bytes{{slot_bytes(p.*std::get<0>(Traits::inputs), block_of(p, OperandRole::a, tile))},
                  slot_bytes(p.*Traits::output, block_of(p, OperandRole::c, tile))};
  if constexpr (has_b<Args>)
    bytes.input[1] = slot_bytes(p.*std::get<1>(Traits::inputs), block_of(p, OperandRole::b, tile));
  return bytes;
}

// ---------------------------------------------------------------- candidates
int64_t size_of_part(int64_t total, int64_t parts) {
  const int64_t size = ceil_div(total, parts);
  const int64_t unit = size >= 1024 ? 128 : size >= 128 ? 32 : size >= 16 ? 8 : 1;
  return std::min(total, ceil_div(size, unit) * unit);
}

// Of the sums. Where their order is promised, parts begin where its blocks do.
int64_t depth_of_part(const SgemmArgs& p, int64_t total, int64_t parts) {
  if (p.precision != Precision::reproducible) return size_of_part(total, parts);
  return std::min(total, ceil_div(ceil_div(total, parts), REPRODUCIBLE_BLOCK) * REPRODUCIBLE_BLOCK);
}
template <class Args>
int64_t depth_of_part(const Args&, int64_t total, int64_t parts) {
  return size_of_part(total, parts);
}

// 1, 2, 3, 4, 6, 8, 12, ...
std::vector<int64_t> cut_counts(int64_t total) {
  std::vector<int64_t> counts{1};
  for (int64_t power = 2; power <= total; power *= 2) {
    counts.push_back(power);
    if (power * 3 / 2 <= total) counts.push_back(power * 3 / 2);
  }
  return counts;
}

template <class Args>
class Planner {
 public:
  Planner(const Args& layout, std::size_t memory, const KernelFor<Args>& kernel_for)
      : layout_(layout), whole_(whole(layout)), memory_(double(memory)), kernel_for_(kernel_for) {}

  OutOfCoreShape best() {
    if (whole_.problems > 1) try_groups();
    if (best_.bytes) return best_;
    for (const int64_t rows : cut_counts(whole_.rows))
      for (const int64_t cols : cut_counts(whole_.cols)) try_tiles(rows, cols);
    return best_;
  }

 private:
  // Whole problems, as many to a tile as fit.
  void try_groups() {
    for (int64_t problems = ceil_div(whole_.problems, group_count); best_.bytes == 0;
         problems = ceil_div(problems, 2)) {
      consider({.problems = problems, .rows = whole_.rows, .cols = whole_.cols, .depths = whole_.depths});
      if (problems == 1) return;
    }
  }
  // The panels of the sums are as deep as fits.
  void try_tiles(int64_t row_cuts, int64_t col_cuts) {
    for (const int64_t depth_cuts : cut_counts(whole_.depths)) {
      OutOfCoreShape shape{.rows = size_of_part(whole_.rows, row_cuts),
                           .cols = size_of_part(whole_.cols, col_cuts),
                           .depths = depth_of_part(layout_, whole_.depths, depth_cuts)};
      if (consider(shape)) return;
    }
  }

  bool consider(OutOfCoreShape shape) {
    const Cuts c = cuts(whole_, shape);
    if (double(c.rows) * double(c.cols) * double(c.depth) * double(c.groups) > most_tiles) return false;
    const bool many_a = c.rows * c.depth > 1 || (c.groups > 1 && !is_shared(layout_, OperandRole::a));
    const bool many_b = c.cols * c.depth > 1 || (c.groups > 1 && !is_shared(layout_, OperandRole::b));
    shape.input_slots[0] = many_a ? 2 : 1;
    shape.input_slots[1] = many_b ? 2 : 1;
    const Times rows_first = times(shape, c, true), cols_first = times(shape, c, false);
    const double a = double(whole_.rows), b = double(whole_.cols);
    shape.rows_outermost = a * rows_first.a + b * rows_first.b <= a * cols_first.a + b * cols_first.b;
    choose_slices(shape, c);
    const SlotBytes bytes = slot_bytes(layout_, shape);
    const double slots = bytes.input[0] * shape.input_slots[0] + bytes.input[1] * shape.input_slots[1] +
                         bytes.output * shape.output_slots;
    if (slots > memory_) return false;
    OutOfCoreTile largest = largest_tile(shape);
    largest.first = c.depth == 1;  // most of several panels add to the result, which may be another kernel
    const Args tile = sub_problem(layout_, largest);
    const Kernel<Args>& kernel = kernel_for_(tile);
    const double all = slots + double(kernel.workspace(tile)) + 256;
    if (all > memory_) return false;
    shape.bytes = std::size_t(all);
    const double us = estimate_us(shape, c, bytes, sum_us(tile, kernel_for_.us(kernel, tile), shape, c));
    if (best_.bytes == 0 || us < best_us_) best_ = shape, best_us_ = us;
    return true;
  }

  // How often the panels of each operand come. If the sums are cut, all of them for every tile; else those that are met
  // by all others in a row only once, and the others too if there are slots for all of them.
  struct Times {
    double a, b;
  };
  static Times times(const OutOfCoreShape& s, const Cuts& c, bool rows_outermost) {
    const double every_col = double(c.cols), every_row = double(c.rows);
    if (c.depth > 1) return {every_col, every_row};
    if (rows_outermost) return {1, c.cols <= s.input_slots[1] ? 1 : every_row};
    return {c.rows <= s.input_slots[0] ? 1 : every_col, 1};
  }

  // A tile of a product is computed in slices where its sums begin and end, so that the next tile can begin where this
  // one has already left.
  void choose_slices(OutOfCoreShape& shape, const Cuts& c) const {
    const double tile = 4.0 * double(shape.rows) * double(shape.cols);
    int64_t slices = sliced(layout_) && shape.problems == 1 ? int64_t(std::max(tile / slice_bytes, 2.0)) : 1;
    slices = std::clamp<int64_t>(slices, 1, std::max<int64_t>(std::min(most_slices, shape.rows / least_slice_rows), 1));
    shape.slice_rows = size_of_part(shape.rows, slices);
    shape.output_slots = slices > 1 || c.rows * c.cols * c.groups == 1 ? 1 : 2;
  }

  // The products of all panels of a tile: the first and the last of them in slices.
  double sum_us(const Args& tile, double tile_us, const OutOfCoreShape& s, const Cuts& c) const {
    if (s.slice_rows >= s.rows) return double(c.depth) * (tile_us + tile_step_us);
    const Block block{0, 1, 0, s.slice_rows, 0, s.cols};
    const Args slice = sub_problem(tile, block);
    const double slices_us =
        double(ceil_div(s.rows, s.slice_rows)) * (kernel_for_.us(kernel_for_(slice), slice) + tile_step_us);
    const double in_slices = double(std::min<int64_t>(c.depth, 2));
    return in_slices * slices_us + (double(c.depth) - in_slices) * (tile_us + tile_step_us);
  }

  double estimate_us(const OutOfCoreShape& s, const Cuts& c, const SlotBytes& bytes, double sum_us) const {
    const double tiles = double(c.rows) * double(c.cols) * double(c.groups), batch = double(c.groups);
    const Times again = times(s, c, s.rows_outermost);
    const double in =
        bytes.input[0] * double(c.rows * c.depth) * again.a * (is_shared(layout_, OperandRole::a) ? 1 : batch) +
        bytes.input[1] * double(c.cols * c.depth) * again.b * (is_shared(layout_, OperandRole::b) ? 1 : batch);
    const double out = bytes.output * tiles;
    const double product = sum_us * tiles;
    const double first_and_last =
        bytes.input[0] + bytes.input[1] + bytes.output * double(s.slice_rows) / double(std::max<int64_t>(s.rows, 1));
    // What does not bind costs a little too: nothing overlaps perfectly, and large tiles are the more efficient.
    constexpr double unhidden = 0.15;
    const double in_us = in / link_bytes_per_us, out_us = out / link_bytes_per_us;
    const double longest = std::max({in_us, out_us, product});
    return (1 - unhidden) * longest + unhidden * (in_us + out_us + product) + first_and_last / link_bytes_per_us;
  }

  const Args& layout_;
  Part whole_;
  double memory_;
  const KernelFor<Args>& kernel_for_;
  OutOfCoreShape best_;
  double best_us_ = 0;
};

}  // namespace

template <class Args>
OutOfCoreShape choose_out_of_core_shape(const Args& layout, std::size_t memory, const KernelFor<Args>& kernel_for) {
  return Planner<Args>(layout, memory, kernel_for).best();
}

#define FL_INSTANTIATE(Args) \
  template OutOfCoreShape choose_out_of_core_shape(const Args&, std::size_t, const KernelFor<Args>&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
