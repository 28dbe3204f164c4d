// What the strict SGEMM kernels for Hopper are expected to take: a start, and then for every wave of tiles a time per
// tile and one per element of k. Measured on an H200 at k = 128, 1024 and 4096, at sizes that fill one to five waves,
// and at 200 random shapes. What a tile is comes from its object; what was measured stands in kernels.def. Nothing here
// decides a bit of a result: that is plan/strict_plan.h.
#pragma once

#include "core/problem.h"
#include "plan/strict_tiles.h"

namespace fl {

// START_NS passes once, TILE_NS per wave, PS_PER_K per element of k of a wave.
struct PipelinedCost {
  int start_ns = 0;
  int tile_ns;
  int ps_per_k;
  int full_ns = 0;        // what the smallest tiles take longer where the next kernel finds too little room to begin
  int tma_percent = 100;  // of ps_per_k where the TMA variant runs
};
double cost_us(const SgemmArgs& p, const PipelinedTile& tile, const PipelinedCost& cost);

struct ClusterSplitKCost {
  int tile_ns, ps_per_k;
};
double cost_us(const SgemmArgs& p, const ClusterSplitKTile& tile, const ClusterSplitKCost& cost);

// What passes in any case: start_ns and block_ps_per_k for each k. What the multiprocessor with the most tiles spends
// on each: tile_ns and ps_per_k, more where operands are not aligned or transposed. fs_per_output has to be written.
struct InterleavedCost {
  int start_ns, tile_ns, block_ps_per_k, ps_per_k, fs_per_output;
};
double cost_us(const SgemmArgs& p, const InterleavedTile& tile, const InterleavedCost& cost);

// A tile takes warp_ps_per_k per element of k by itself and adds tile_ns and ps_per_k to what its multiprocessor has to
// do.
struct WarpTileCost {
  int start_ns, warp_ps_per_k, tile_ns, ps_per_k;
};
double cost_us(const SgemmArgs& p, const WarpTile& tile, const WarpTileCost& cost);

template <auto TILE, auto COST>
double strict_cost(const SgemmArgs& p) {
  return cost_us(p, TILE, COST);
}

double short_k_cost(const SgemmArgs& p);
double element_cost(const SgemmArgs& p);

}  // namespace fl
