// What the strict SGEMM kernels are expected to take: a start, and then for every wave of tiles a time per tile and one
// per element of k. What a tile is comes from its object (plan/strict/), what was measured from measured.def. Nothing
// here decides a bit of a result: that is plan/strict/ too.
#pragma once

#include <type_traits>

#include "core/problem.h"
#include "cost/coefficients.h"
#include "plan/strict/cluster_tiles.h"
#include "plan/strict/multistage_tiles.h"
#include "plan/strict/pipelined_tiles.h"
#include "plan/strict/warp_tiles.h"

namespace fl {

// start_ns passes once, tile_ns per wave, k_ps per element of k of a wave: tma of that where the TMA variant runs (1:
// there is none). output_fs for each output, which a short k does not hide. no_pdl_ns, here and below: what a call
// takes longer on a device without programmatic dependent launch.
FL_COEFFICIENTS(PipelinedCost, start_ns, tile_ns, k_ps, output_fs, tma, no_pdl_ns);
double cost_us(const SgemmArgs& p, const PipelinedTile& tile, const DeviceSpec& device, const PipelinedCost& cost);

FL_COEFFICIENTS(ClusterSplitKCost, tile_ns, k_ps, tma);
double cost_us(const SgemmArgs& p, const ClusterSplitKTile& tile, const DeviceSpec& device,
               const ClusterSplitKCost& cost);

// What passes in any case: start_ns and block_k_ps for each k. What the multiprocessor with the most tiles spends on
// each: tile_ns and k_ps, more where operands are not aligned or transposed; and on all that are there at a time:
// round_ns. output_fs for each output. So many times block_k_ps and k_ps, here and below, where copies go through
// registers.
FL_COEFFICIENTS(TogetherCost, start_ns, tile_ns, block_k_ps, k_ps, round_ns, output_fs, block_by_registers,
                by_registers, no_pdl_ns);
double cost_us(const SgemmArgs& p, const MultistageTile& tile, const DeviceSpec& device, const TogetherCost& cost);

// The same for slices of steps, where block_k_ps passes for each wave of blocks, and all outputs cost the same. The
// others make a step along k longer: copies of an operand that is not the way it is read, or not aligned, and copies by
// way of registers.
FL_COEFFICIENTS(SliceCost, start_ns, tile_ns, block_k_ps, k_ps, transposed_a, transposed_b, unaligned,
                block_by_registers, by_registers, transposed_a_by_registers, transposed_b_by_registers,
                unaligned_by_registers, no_pdl_ns);
double cost_us(const SgemmArgs& p, const MultistageTile& tile, const DeviceSpec& device, const SliceCost& cost);

// The same where copies are spread, but that k_ps is longer for each float that comes by a copy of 4 bytes of its own,
// by by4_ps along a line of the operand, by transposed_ps across. tail_ns passes where the ranges of k are not whole
// steps: their last copies are not spread; by_registers_ns in its place where no copies are.
// across_fs for each output where a tall tile computes the transposed product and stores down the columns of C.
FL_COEFFICIENTS(SpreadCost, start_ns, tile_ns, block_k_ps, k_ps, by4_ps, transposed_ps, round_ns, tail_ns, output_fs,
                across_fs, by_registers_ns, block_by_registers, by_registers, no_pdl_ns);
double cost_us(const SgemmArgs& p, const MultistageTile& tile, const DeviceSpec& device, const SpreadCost& cost);

// A tile takes warp_k_ps per element of k by itself and adds tile_ns and k_ps to what its multiprocessor has to do: all
// of it less by `aligned` for each operand that comes by copies of 16 bytes, or so many times by way of registers.
FL_COEFFICIENTS(WarpTileCost, start_ns, warp_k_ps, tile_ns, k_ps, aligned, by_registers, no_pdl_ns);
double cost_us(const SgemmArgs& p, const WarpTile& tile, const DeviceSpec& device, const WarpTileCost& cost);

// The coefficients of a tile's model.
template <auto TILE>
struct CostOf;
template <PipelinedTile TILE>
struct CostOf<TILE> {
  using type = PipelinedCost;
};
template <ClusterSplitKTile TILE>
struct CostOf<TILE> {
  using type = ClusterSplitKCost;
};
template <MultistageTile TILE>
struct CostOf<TILE> {
  using type =
      std::conditional_t<TILE.slices(), SliceCost, std::conditional_t<TILE.spread(), SpreadCost, TogetherCost>>;
};
template <WarpTile TILE>
struct CostOf<TILE> {
  using type = WarpTileCost;
};
template <auto TILE>
double strict_us(const SgemmArgs& p, const DeviceSpec& device, const typename CostOf<TILE>::type& cost) {
  return cost_us(p, TILE, device, cost);
}

// What all of these kernels have in common. Copies make a step along k longer: by `transposed` and the like, or by so
// much for each FMA that there is for a float copied, and at most so much.
FL_COEFFICIENTS(CopyCost, transposed, unaligned_by_fma, most_unaligned, unaligned_transposed_by_fma,
                most_unaligned_transposed, range_transposed, range_unaligned_by_fma, interleaved_transposed,
                interleaved_unaligned, unaligned_output_fs, interleaved_unaligned_output, stream_k_us, reduction_us,
                interleaved_reduction_us, reduction_fs, interleaved_long_us, interleaved_long, room_of_clusters_of_four,
                reduction_no_pdl_us, reduction_split_ns);

// Of the kernel that adds so many sums of each output of a product.
double slab_addition_us(const SgemmArgs& p, int slabs, const DeviceSpec& device);

// The few tiles: few_start_us and few_k_ps along k, few_output_k_ps for each output and k of a multiprocessor.
// `transposed`: for each operand that is not the way it is read. by_registers: so many times all along k where copies
// go through registers.
FL_COEFFICIENTS(ShortKCost, start_us, k_ps, output_k_ps, few_start_us, few_k_ps, few_output_k_ps, output_fs,
                unaligned_output_fs, transposed, by_registers, no_pdl_us);
double short_k_us(const SgemmArgs& p, const DeviceSpec& device, const ShortKCost& cost);

// Lanes that read rows of B side by side in k hinder each other where these lie whole lines apart: 5 x 73 x 32 takes
// 3.3 us. For each output of a multiprocessor output_ps, and for each of its FMAs output_k_ps and line_k_ps for every
// line but the first that a warp's lanes read at a time, of each operand.
FL_COEFFICIENTS(ElementCost, start_us, k_ps, whole_lines_k_ps, output_ps, output_k_ps, line_k_ps, no_pdl_us);
double element_us(const SgemmArgs& p, const DeviceSpec& device, const ElementCost& cost);

}  // namespace fl
