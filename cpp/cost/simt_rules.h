// What the strict SGEMM kernels for Hopper are expected to cost: a start, and then for every wave of tiles a price per
// tile and one per element of k. Measured on an H200 (132 multiprocessors) at k = 128, 1024 and 4096, at sizes that
// fill one to five waves, and at 200 random shapes; the constants stand in kernels.def.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/problem.h"
#include "cost/rules.h"
#include "plan/chains.h"

namespace fl {

// How much longer a step along k of a BM x BN tile takes where operands travel by 4-byte copies: the more the less FMAs
// there are for a float copied, and a little more where they turn. The tiles of A that have k contiguous (A_BY_K) are
// those of the kernels with a ring per warp.
double copy_factor(const SgemmArgs& p, double BM, double BN, bool A_BY_K);
// Storing C, in nanoseconds for each output of a tile, where nothing else goes on meanwhile.
double store_ns(const SgemmArgs& p);

// Whether tiles that come to no whole number of waves of `blocks` are shared out evenly (simt_ring_share.cuh). No bits
// depend on it. What it takes: a tile of sums for each block, and a flag for each of its eight warps.
bool sharing_pays(const SgemmArgs& p, int64_t BM, int64_t BN, int64_t blocks);
std::size_t sharing_bytes(const SgemmArgs& p, int64_t BM, int64_t BN);
constexpr double SHARING_US = 10;

// Whether a kernel for whole tiles takes it, whose blocks step along k by STEP together.
bool whole_tiles(const SgemmArgs& p, int64_t BM, int64_t BN, int64_t STEP);

// A BM x BN tile takes SPLIT blocks of a cluster; as many run at a time as there are multiprocessors, or 120 in fours,
// because a cluster has to find its multiprocessors in one part of the chip. Each block does its share of k in STEPs;
// one that is not whole costs half of what it lacks. START_NS passes once, TILE_NS per wave, PS_PER_K per element of k
// of a wave, or WHOLE_PERCENT of that where all tiles are whole and the kernel has a twin for them.
template <int BM, int BN, int SPLIT, int STEP, int START_NS, int TILE_NS, int PS_PER_K, bool A_BY_K = false,
          bool SHARES = false, int WHOLE_PERCENT = 100>
double simt_cost(const SgemmArgs& p) {
  constexpr double slots = SPLIT == 4 ? 120 : 132;
  const double blocks = double(ceil_div(p.m, BM)) * double(ceil_div(p.n, BN)) * double(p.batch) * SPLIT;
  const bool shared = SHARES && sharing_pays(p, BM, BN, int64_t(slots));
  const double waves = shared ? blocks / slots : double(int64_t((blocks + slots - 1) / slots));
  const double whole = double(ceil_div(p.k, STEP * SPLIT) * STEP), k = 0.5 * (whole + double(p.k) / SPLIT);
  const double tile_ns = TILE_NS + store_ns(p) * BM * BN;
  const double k_ps =
      WHOLE_PERCENT < 100 && whole_tiles(p, BM, BN, 32 * SPLIT) ? 0.01 * WHOLE_PERCENT * PS_PER_K : PS_PER_K;
  return 1e-3 * START_NS + (shared ? SHARING_US : 0.0) +
         waves * (1e-3 * tile_ns + 1e-6 * k_ps * k * copy_factor(p, BM, BN, A_BY_K));
}
template <int BM, int BN, int START_NS, int TILE_NS, int PS_PER_K>
double shared_cost(const SgemmArgs& p) {
  return simt_cost<BM, BN, 1, 2, START_NS, TILE_NS, PS_PER_K, false, true>(p);
}
template <int BM, int BN, int SPLIT, int TILE_NS, int PS_PER_K>
double warps_cost(const SgemmArgs& p) {
  // By boxes it takes 0.78 to 0.82 of the time at k = 1024.
  return (whole_tiles(p, BM, BN, 128 * SPLIT) ? 0.82 : 1.0) *
         simt_cost<BM, BN, SPLIT, 128, 0, TILE_NS, PS_PER_K, true>(p);
}

// Where there are few tiles and a long k, blocks take ranges of k and leave their sums in the workspace, in rows of
// `ld` floats. `splits` is 1 where that does not pay.
struct CutPlan {
  int splits;
  int64_t ld;
};
CutPlan cut_plan(const SgemmArgs& p, int64_t BM, int64_t BN, int64_t groups);  // that share a range
double cut_us(const SgemmArgs& p, int splits);                                 // of adding up the sums

template <int BM, int BN, int GROUPS>
int64_t cut_chain(const SgemmArgs& p) {
  return cut_chain(p.k, GROUPS, false, cut_plan(p, BM, BN, GROUPS).splits);
}
template <int BM, int BN, int GROUPS>
std::size_t cut_workspace(const SgemmArgs& p) {
  const CutPlan plan = cut_plan(p, BM, BN, GROUPS);
  return plan.splits == 1 ? 0 : std::size_t(plan.splits) * std::size_t(p.batch * p.m * plan.ld) * sizeof(float);
}
template <int BM, int BN>
std::size_t shared_workspace(const SgemmArgs& p) {
  return sharing_bytes(p, BM, BN);
}
template <int BM, int BN>
std::size_t cut_or_shared_workspace(const SgemmArgs& p) {
  return cut_plan(p, BM, BN, 1).splits > 1 ? cut_workspace<BM, BN, 1>(p) : sharing_bytes(p, BM, BN);
}
// FULL_NS: what the smallest tiles take longer where the next kernel finds too few multiprocessors to begin on.
template <int BM, int BN, int GROUPS, int STEP, int START_NS, int TILE_NS, int PS_PER_K, int FULL_NS = 0,
          bool SHARES = false, int WHOLE_PERCENT = 100>
double cut_cost(const SgemmArgs& p) {
  const int splits = cut_plan(p, BM, BN, GROUPS).splits;
  if (SHARES && splits == 1) return shared_cost<BM, BN, START_NS, TILE_NS, PS_PER_K>(p);
  SgemmArgs part = p;
  part.k = ceil_div(p.k, splits), part.batch = p.batch * splits;
  const bool full = ceil_div(p.m, BM) * ceil_div(p.n, BN) * part.batch > 66;
  return simt_cost<BM, BN, 1, STEP, START_NS, TILE_NS, PS_PER_K, false, false, WHOLE_PERCENT>(part) +
         (full ? 1e-3 * FULL_NS : 0.0) + (splits > 1 ? cut_us(p, splits) : 0.0);
}

// 16-byte copies and rows of A that have k contiguous: 0.56 of what it takes without.
double tiny_factor(const SgemmArgs& p);

// A warp to a tile, PER_SM of them on a multiprocessor: a tile takes PS_ALONE per element of k by itself and adds
// NS_TILE and PS_SHARED to what its multiprocessor has to do.
template <int BM, int BN, int PER_SM, int START_NS, int PS_ALONE, int NS_TILE, int PS_SHARED>
double tiny_cost(const SgemmArgs& p) {
  const int64_t tiles = ceil_div(p.m, BM) * ceil_div(p.n, BN) * p.batch;
  const double k = double(ceil_div(p.k, 16) * 16);
  return 1e-3 * START_NS + double(ceil_div(tiles, 132 * PER_SM)) * 1e-6 * PS_ALONE * k +
         double(ceil_div(tiles, 132)) * (1e-3 * NS_TILE + 1e-6 * PS_SHARED * k) * tiny_factor(p);
}

// Tiles of eight warps, a few of them on a multiprocessor at a time (simt_sliced.cuh). What passes in any case:
// START_NS and PS_K for each k. What the multiprocessor with the most tiles spends on each: TILE_NS and PS_SHARED per
// k, more where operands are not aligned or turn. FS_C for each output, which has to be written.
double sliced_factor(const SgemmArgs& p);
CutPlan sliced_cut(const SgemmArgs& p, int64_t BM, int64_t BN, int64_t groups);
template <int BM, int BN, int G>
int64_t sliced_chain(const SgemmArgs& p) {
  return cut_chain(p.k, G, true, sliced_cut(p, BM, BN, G).splits);
}
template <int BM, int BN, int G>
std::size_t sliced_workspace(const SgemmArgs& p) {
  const CutPlan cut = sliced_cut(p, BM, BN, G);
  return cut.splits == 1 ? 0 : std::size_t(cut.splits) * std::size_t(p.batch * p.m * cut.ld) * sizeof(float);
}
template <int BM, int BN, int G, int START_NS, int TILE_NS, int PS_K, int PS_SHARED, int FS_C>
double sliced_cost(const SgemmArgs& p) {
  const CutPlan cut = sliced_cut(p, BM, BN, G);
  const double blocks = double(ceil_div(p.m, BM) * ceil_div(p.n, BN) * p.batch) * cut.splits;
  const double most = double(int64_t((blocks + 131) / 132)), k = double(ceil_div(p.k, cut.splits));
  const double written = double(p.m) * double(p.n) * double(p.batch) * cut.splits * (aligned16(p.c) ? 1.0 : 1.34);
  const double us = 1e-3 * START_NS + 1e-6 * PS_K * k +
                    most * (1e-3 * TILE_NS + 1e-6 * PS_SHARED * k * sliced_factor(p)) + 1e-9 * FS_C * written +
                    (cut.splits > 1 ? cut_us(p, cut.splits) - 0.4 : 0.0);
  return us > 50 ? 1.08 * us : us;  // fitted to shorter products
}

bool shallow_is_large(const SgemmArgs& p);  // enough of the larger tiles for all multiprocessors
bool shallow_is_small(const SgemmArgs& p);  // so few of the smaller ones that four to a multiprocessor hold them
double shallow_cost(const SgemmArgs& p);
double element_cost(const SgemmArgs& p);

}  // namespace fl
