#include "transfer/out_of_core_plan.h"
#include "core/operations.h"

#include <algorithm>
#include <utility>

namespace fl {
namespace {

// ---------------------------------------------------------------- the order of the tiles
// The slots of one operand and what lies in them: the one used longest ago is used next.
class Slots {
 public:
  explicit Slots(int count) : held_(std::size_t(count)) {}
  // The slot for a block; `load` says whether it has to be filled.
  int find(const Block& block, bool& load) {
    std::size_t oldest = 0;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (held_[i].block == block) {
        load = false;
        held_[i].used = ++clock_;
        return int(i);
      }
      if (held_[i].used < held_[oldest].used) oldest = i;
    }
    load = true;
    held_[oldest] = {block, ++clock_};
    return int(oldest);
  }

 private:
  struct Held {
    Block block;
    int64_t used = 0;
  };
  std::vector<Held> held_;
  int64_t clock_ = 0;
};

template <class Args>
void add_tile(const Args& p, const OutOfCoreShape& s, OutOfCoreTile tile, Slots& a, Slots& b,
              std::vector<OutOfCoreTile>& tiles) {
  if (!tiles.empty()) tile.output_slot = (tiles.back().output_slot + (tile.first ? 1 : 0)) % s.output_slots;
  tile.input_slot[0] = a.find(block_of(p, OperandRole::a, tile), tile.load[0]);
  tile.load[1] = has_b<Args>;
  if (has_b<Args>) tile.input_slot[1] = b.find(block_of(p, OperandRole::b, tile), tile.load[1]);
  const bool in_slices = (tile.first || tile.last) && s.slice_rows < s.rows;
  for (int64_t row = 0; row < tile.rows; row += in_slices ? s.slice_rows : tile.rows) tile.slices.push_back(row);
  tile.slices.push_back(tile.rows);
  tiles.push_back(std::move(tile));
}

template <class Args>
void add_tiles(const Args& p, const OutOfCoreShape& s, OutOfCorePlan<Args>& plan) {
  const Part e = whole(p);
  const Cuts c = cuts(e, s);
  Slots a(s.input_slots[0]), b(s.input_slots[1]);
  const int64_t outer = s.rows_outermost ? c.rows : c.cols, inner = s.rows_outermost ? c.cols : c.rows;
  for (int64_t group = 0; group < c.groups; ++group)
    for (int64_t i = 0; i < outer; ++i)
      for (int64_t turn = 0; turn < inner; ++turn) {
        const int64_t j = i % 2 == 0 ? turn : inner - 1 - turn;  // back and forth: what was used last is still there
        const int64_t row = (s.rows_outermost ? i : j) * s.rows, col = (s.rows_outermost ? j : i) * s.cols;
        for (int64_t l = 0; l < c.depth; ++l) {
          const int64_t problem = group * s.problems, depth = l * s.depths;
          OutOfCoreTile tile{Part{.problem = problem,
                                  .problems = std::min(s.problems, e.problems - problem),
                                  .row = row,
                                  .rows = std::min(s.rows, e.rows - row),
                                  .col = col,
                                  .cols = std::min(s.cols, e.cols - col),
                                  .depth = depth,
                                  .depths = std::min(s.depths, e.depths - depth)}};
          tile.first = l == 0;
          tile.last = l + 1 == c.depth;
          add_tile(p, s, std::move(tile), a, b, plan.tiles);
        }
      }
}

}  // namespace

template <class Args>
OutOfCorePlan<Args> plan_out_of_core(const Args& layout, std::size_t memory, const KernelFor<Args>& kernel_for) {
  OutOfCorePlan<Args> plan{choose_out_of_core_shape(layout, memory, kernel_for), {}};
  if (plan.shape.bytes) add_tiles(layout, plan.shape, plan);
  return plan;
}

template <class Args>
std::vector<OutOfCorePlan<Args>> share_out(const OutOfCorePlan<Args>& plan, const Args& layout, int devices) {
  const OutOfCoreShape& shape = plan.shape;
  const int64_t results =
      std::count_if(plan.tiles.begin(), plan.tiles.end(), [](const auto& tile) { return tile.last; });
  const int64_t count = std::min<int64_t>(devices, results);
  std::vector<OutOfCorePlan<Args>> shares(std::size_t(count), {shape, {}});
  std::size_t next = 0;
  for (int64_t device = 0, done = 0; device < count; ++device) {
    Slots a(shape.input_slots[0]), b(shape.input_slots[1]);
    for (const int64_t end = results * (device + 1) / count; done < end; done += plan.tiles[next++].last) {
      OutOfCoreTile tile{static_cast<const Part&>(plan.tiles[next])};
      tile.first = plan.tiles[next].first, tile.last = plan.tiles[next].last;
      add_tile(layout, shape, std::move(tile), a, b, shares[std::size_t(device)].tiles);
    }
  }
  return shares;
}

#define FL_INSTANTIATE(Args)                                                                       \
  template OutOfCorePlan<Args> plan_out_of_core(const Args&, std::size_t, const KernelFor<Args>&); \
  template std::vector<OutOfCorePlan<Args>> share_out(const OutOfCorePlan<Args>&, const Args&, int);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
