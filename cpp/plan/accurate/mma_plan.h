// Which tile computes a product by mma.sync, and how its k is cut: what costs and kernels have to agree on.
#pragma once

#include <span>

#include "plan/accurate/mma_tiles.h"
#include "plan/accurate/split_k.h"

namespace fl {

constexpr std::span<const MmaTile> mma_tiles(MmaProduct product) {
  if (product == MmaProduct::bf16x6) return bf16x6_mma_tiles;
  if (product == MmaProduct::fp16x2_k8) return fp16x2_mma_k8_tiles;
  return fp16x2_mma_tiles;
}

struct MmaTileChoice {
  int index = -1;          // in the list of the product
  double rounds_area = 0;  // elements of C that one multiprocessor computes, weighed by the rate of the tile
  double ends = 0;
};

// Operations of a multiprocessor in a microsecond in large products. Frozen, like the rates and ends of the tiles.
constexpr double PLAN_MMA_OPERATIONS_PER_US = 150e6 / double(PLAN_MULTIPROCESSORS);
constexpr double mma_product_us(const MmaTileChoice& choice, int64_t k) {
  return choice.rounds_area * 2 * double(k) / PLAN_MMA_OPERATIONS_PER_US + choice.ends;
}
// Of those that sum up as `planned` does, if that is given.
constexpr MmaTileChoice fastest_mma_tile(MmaProduct product, int64_t m, int64_t n, int64_t k, int64_t multiprocessors,
                                         std::size_t shared_per_block, const MmaTile* planned) {
  MmaTileChoice best{};
  double least = 0;
  const auto tiles = mma_tiles(product);
  for (int i = 0; i < int(tiles.size()); ++i) {
    const MmaTile& t = tiles[i];
    if (planned && (planned->k_groups != t.k_groups || planned->BK != t.BK)) continue;
    if (std::size_t(t.shared_bytes()) > shared_per_block || (t.single && !planned)) continue;
    const int64_t rounds = ceil_div(ceil_div(m, t.BM) * ceil_div(n, t.BN), multiprocessors);
    if (t.single && rounds > 1) continue;
    const MmaTileChoice choice{i, double(rounds) * t.BM * t.BN / t.rate, t.ends};
    const double time = mma_product_us(choice, k);
    if (best.index < 0 || time < least) least = time, best = choice;
  }
  return best;
}
constexpr MmaTileChoice fastest_mma_tile(MmaProduct product, int64_t m, int64_t n, int64_t k) {
  return fastest_mma_tile(product, m, n, k, PLAN_MULTIPROCESSORS, capability(90).shared_per_block, nullptr);
}

// How k is summed decides bits, so it is chosen for the reference device; which of the tiles that sum so, for the
// device that is there.
constexpr const MmaTile& planned_mma_tile(MmaProduct product, int64_t m, int64_t n, int64_t k) {
  return mma_tiles(product)[fastest_mma_tile(product, m, n, k).index];
}
constexpr MmaTileChoice choose_mma_tile(MmaProduct product, int64_t m, int64_t n, int64_t k, const DeviceSpec& device) {
  return fastest_mma_tile(product, m, n, k, device.multiprocessors, device.shared_per_block,
                          &planned_mma_tile(product, m, n, k));
}

// Split-K, by the largest tile that a device has with such sums, of 128 rows.
constexpr AccurateSplitK mma_split_k(MmaProduct product, int64_t m, int64_t n, int64_t k) {
  if (product != MmaProduct::fp16x2) return {};
  const double us = 0.9 * mma_product_us(fastest_mma_tile(product, m, n, k), k);
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
