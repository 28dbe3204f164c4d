#include "plan/strict/multistage_plan.h"

#include "plan/reference_device.h"
#include "plan/tall_skinny_plan.h"

namespace fl {
namespace {

// Frozen, as in split_k_plan.cpp. Of a tile, of a k, and of an output and k; the latency of a k passes whatever the
// number of blocks.
struct Times {
  double tile_us, latency_k_us, k_us, output_k_us;
};
constexpr Times SPREAD{1, 3e-3, 0, 5.8e-6}, SLICES{3.2, 0, 1e-3, 8.2e-6},
    TOGETHER{0.6, 0.27 / 32, 0.1 / 32, 0.168e-3 / 32};

}  // namespace

SplitKRule split_k_rule(const MultistageTile& tile) {
  const Times& times = tile.slices() ? SLICES : tile.spread() ? SPREAD : TOGETHER;
  return {.BM = tile.BM,
          .BN = tile.BN,
          .groups = tile.k_groups,
          .unit = tile.k_unit(),
          .whole_units = false,
          .most_tiles = tile.k_groups == 1 ? -1 : (tile.spread() ? 3 : 2) * PLAN_MULTIPROCESSORS,
          .short_k = tile.slices()   ? 192
                     : tile.spread() ? 112
                                     : 224,
          .least_units = tile.slices() ? 2 : 4,
          .most_waves = tile.slices() ? 3 : 6,
          .latency_k_us = times.latency_k_us,
          .tile_us = times.tile_us,
          .k_us = times.k_us + times.output_k_us * double(tile.BM * tile.BN)};
}

SgemmArgs transposed_problem(const SgemmArgs& p, const MultistageTile& tile) {
  return tile.tall() ? long_operand_left(p) : p;
}

}  // namespace fl
