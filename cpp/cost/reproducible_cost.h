// What the kernels of precision="reproducible" that multiply blocks of k side by side are expected to take: the strict
// kernel with such tiles, by its own model, and what adds its results.
#pragma once

#include "core/problem.h"
#include "cost/strict_cost.h"
#include "plan/reproducible_plan.h"

namespace fl {

struct SlabsCost {
  SgemmArgs product, tail;  // of a group of blocks, as a batch; of blocks that are not whole, if k is not 0
  double groups, tails;     // the last group may have fewer blocks
  double other_us;          // launches, and the additions
};
// `tail_apart`: a block that is not whole is a product of its own.
SlabsCost slabs_cost(const SgemmArgs& p, const DeviceSpec& device, bool tail_apart);

// `US` is the model of the strict kernel.
template <auto US, bool TAIL_APART>
struct InSlabs;
template <class C, double (*US)(const SgemmArgs&, const DeviceSpec&, const C&), bool TAIL_APART>
struct InSlabs<US, TAIL_APART> {
  static double us(const SgemmArgs& p, const DeviceSpec& device, const C& cost) {
    if (is_plain_product(p)) return US(p, device, cost);
    const SlabsCost slabs = slabs_cost(p, device, TAIL_APART || !device.has(feature_cp_async));
    return slabs.groups * US(slabs.product, device, cost) + slabs.other_us +
           (slabs.tail.k > 0 ? slabs.tails * US(slabs.tail, device, cost) : 0.0);
  }
};
// Four warps to a tile, each with a block of k at a time (sgemm_reproducible_warps.cu): the four share a
// multiprocessor, and count as one tile there, of which those without a block take nothing.
template <auto US>
struct InRounds;
template <class C, double (*US)(const SgemmArgs&, const DeviceSpec&, const C&)>
struct InRounds<US> {
  static double us(const SgemmArgs& p, const DeviceSpec& device, const C& cost) {
    constexpr int64_t warps = 4;
    const int64_t rounds = std::max<int64_t>(ceil_div(blocks_of_k(p), warps), 1);
    SgemmArgs round = p;
    round.k = std::min(p.k, REPRODUCIBLE_BLOCK);
    C busy = cost;
    busy.k_ps *= double(p.k) / double(std::max<int64_t>(rounds * warps * round.k, 1));
    return double(rounds) * US(round, device, busy);
  }
};

// One row or one column (sgemm_reproducible_vector.cu). A block of k takes chain_ps for each of its k; where there are
// several, their addition takes add_us and slab_ps for each. by4, by_registers: how much longer reading takes than by
// copies of 16 bytes.
FL_COEFFICIENTS(VectorCost, start_us, chain_ps, add_us, slab_ps, memory_bytes_per_us, by4, by_registers, more_us,
                no_pdl_us);
double vector_us(const SgemmArgs& p, const DeviceSpec& device, const VectorCost& cost);

template <auto US>
constexpr auto in_rounds_us = &InRounds<US>::us;
template <auto US>
constexpr auto in_slabs_us = &InSlabs<US, true>::us;
template <auto US>
constexpr auto in_warp_slabs_us = &InSlabs<US, false>::us;  // slabs_of_warps.cuh

}  // namespace fl
