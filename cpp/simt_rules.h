// What the strict SGEMM kernels for Hopper are expected to cost: a start, and then for every wave of tiles a price per
// tile and one per element of k. Measured on an H200 (132 multiprocessors) at k = 128, 1024 and 4096 and at sizes that
// fill one to five waves; the constants stand in kernels.def.
#pragma once

#include "problem.h"

namespace fl {

// A BM x BN tile takes SPLIT blocks of a cluster; SLOTS blocks run at a time. That is 132 without clusters, but only
// 128 in pairs and about 96 in fours, because a cluster has to find its multiprocessors in one part of the chip. Each
// block does its share of k in whole STEPs. START_NS passes once, TILE_NS per wave, PS_PER_K per element of k of a
// wave.
template <int BM, int BN, int SPLIT, int SLOTS, int STEP, int START_NS, int TILE_NS, int PS_PER_K>
double simt_cost(const SgemmArgs& p) {
  const double blocks = double(ceil_div(p.m, BM)) * double(ceil_div(p.n, BN)) * double(p.batch) * SPLIT;
  const double waves = double(int64_t((blocks + SLOTS - 1) / SLOTS));
  const double k = double(ceil_div(p.k, STEP * SPLIT) * STEP);
  return 1e-3 * START_NS + waves * (1e-3 * TILE_NS + 1e-6 * PS_PER_K * k);
}

}  // namespace fl
