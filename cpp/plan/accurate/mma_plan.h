// Which tile computes a product by mma.sync, and how its k is cut: what costs and kernels have to agree on.
#pragma once

#include <span>

#include "plan/accurate/mma_tiles.h"
#include "plan/accurate/split_k.h"
#include "plan/accurate/tile_choice.h"

namespace fl {

constexpr std::span<const MmaTile> mma_tiles(MmaProduct product) {
  if (product == MmaProduct::bf16x6) return bf16x6_mma_tiles;
  if (product == MmaProduct::fp16x2_k8) return fp16x2_mma_k8_tiles;
  return fp16x2_mma_tiles;
}

// Operations of a multiprocessor in a microsecond in large products. Frozen, like the rates and ends of the tiles.
constexpr double PLAN_MMA_OPERATIONS_PER_US = 150e6 / double(PLAN_MULTIPROCESSORS);
// Of those that sum up as `planned` does, if that is given.
constexpr TileChoice fastest_mma_tile(MmaProduct product, int64_t m, int64_t n, int64_t k, int64_t multiprocessors,
                                      std::size_t shared_per_block, const MmaTile* planned) {
  return fastest_tile(mma_tiles(product), k, PLAN_MMA_OPERATIONS_PER_US, [=](const MmaTile& t) {
    if (planned && (planned->k_groups != t.k_groups || planned->BK != t.BK)) return -1.0;
    if (std::size_t(t.shared_bytes()) > shared_per_block || (t.single && !planned)) return -1.0;
    const int64_t rounds = ceil_div(ceil_div(m, t.BM) * ceil_div(n, t.BN), multiprocessors);
    return t.single && rounds > 1 ? -1.0 : double(rounds) * t.BM * t.BN / t.rate;
  });
}
constexpr TileChoice fastest_mma_tile(MmaProduct product, int64_t m, int64_t n, int64_t k) {
  return fastest_mma_tile(product, m, n, k, PLAN_MULTIPROCESSORS, capability(90).shared_per_block, nullptr);
}

// How k is summed decides bits, so it is chosen for the reference device; which of the tiles that sum so, for the
// device that is there.
constexpr const MmaTile& planned_mma_tile(MmaProduct product, int64_t m, int64_t n, int64_t k) {
  return mma_tiles(product)[fastest_mma_tile(product, m, n, k).index];
}
constexpr TileChoice choose_mma_tile(MmaProduct product, int64_t m, int64_t n, int64_t k, const DeviceSpec& device) {
  return fastest_mma_tile(product, m, n, k, device.multiprocessors, device.shared_per_block,
                          &planned_mma_tile(product, m, n, k));
}

// Split-K, by the largest tile that a device has with such sums, of 128 rows.
constexpr AccurateSplitK mma_split_k(MmaProduct product, int64_t m, int64_t n, int64_t k) {
  if (product != MmaProduct::fp16x2) return {};
  const double us = 0.9 * fastest_mma_tile(product, m, n, k).us(k, PLAN_MMA_OPERATIONS_PER_US);
  return fastest_split_k(m, n, k, us, PLAN_MMA_OPERATIONS_PER_US, 1);
}

// Float32 additions on the way of one product into its sum (accumulation_depth.h).
template <MmaProduct PRODUCT>
int64_t mma_depth(const SgemmArgs& p) {
  if (const int parts = mma_split_k(PRODUCT, p.m, p.n, p.k).count; parts > 1)
    return ceil_div(ceil_div(p.k, TERM_BLOCK), parts) + ceil_div(parts, 4) + 2;
  const MmaTile& tile = planned_mma_tile(PRODUCT, p.m, p.n, p.k);
  return ceil_div(ceil_div(p.k, tile.BK), tile.k_groups) + tile.k_groups - 1;
}

}  // namespace fl
