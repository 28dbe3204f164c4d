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
template <LadderTile TILE>
double ladder_us(const SgemmArgs& p, const DeviceSpec& device, const LadderCost& cost) {
  const double room = double(device.multiprocessors) * TILE.blocks;
  const double tiles = double(ceil_div(p.m, TILE.BM)) * double(ceil_div(p.n, TILE.BN)) * double(p.batch);
  const double waves = double(int64_t((tiles + room - 1) / room));
  return cost.start_us + waves * 1e-6 * cost.k_ps * double(p.k) +
         1e-9 * cost.output_fs * double(p.m) * double(p.n) * double(p.batch);
}

}  // namespace fl
