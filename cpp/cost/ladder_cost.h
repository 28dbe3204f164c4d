// What the kernels of the SGEMM ladder are expected to take.
#pragma once

#include "core/problem.h"
#include "cost/coefficients.h"

namespace fl {

// The tile of a block, and how many blocks are on a multiprocessor at a time.
struct LadderTile {
  int BM, BN, blocks;
};
inline constexpr LadderTile ladder_32x32{.BM = 32, .BN = 32, .blocks = 2};
inline constexpr LadderTile ladder_32x128{.BM = 32, .BN = 128, .blocks = 2};
inline constexpr LadderTile ladder_128x128{.BM = 128, .BN = 128, .blocks = 1};
inline constexpr LadderTile ladder_128x256{.BM = 128, .BN = 256, .blocks = 1};
inline constexpr LadderTile ladder_64x64{.BM = 64, .BN = 64, .blocks = 2};

// A launch, whole waves of tiles at k_ps for each element of k, and C, which a short k does not hide.
FL_COEFFICIENTS(LadderCost, start_us, k_ps, output_fs);
double ladder_us(const SgemmArgs& p, const LadderTile& tile, const DeviceSpec& device, const LadderCost& cost);
template <LadderTile TILE>
double ladder_us(const SgemmArgs& p, const DeviceSpec& device, const LadderCost& cost) {
  return ladder_us(p, TILE, device, cost);
}

}  // namespace fl
