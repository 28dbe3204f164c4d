// How the product from two fp16 slices is laid out and guarded: what its rules and its kernels have to agree on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "problem.h"

namespace fl {

// A slice holds 64 x 64 blocks of 2-byte numbers: 64 lines (rows of A, columns of B) by 64 k. The two slices of a block
// lie side by side, and the blocks of 64 lines one after the other along k.
constexpr int FP16X2_BLOCK = 64, FP16X2_SLICE_BYTES = 64 * 64 * 2, FP16X2_BLOCK_BYTES = 2 * FP16X2_SLICE_BYTES;
constexpr int FP16X2_CLUSTER = 8;  // blocks of threads that share 64 lines in the split pass
// The bound of docs/accuracy.md holds from k = 64 on, but short sums of positive numbers are more accurate in plain
// float32: below this k the fallback runs.
constexpr int64_t FP16X2_SMALLEST_K = 256;

struct Fp16x2Plan {
  int64_t a_strips, b_strips, k_blocks;                                             // strips of 64 lines
  std::size_t a_slices, b_slices, a_exponents, b_exponents, guard, verdict, bytes;  // offsets, and the whole

  constexpr explicit Fp16x2Plan(const SgemmArgs& p)
      : a_strips(ceil_div(p.m, FP16X2_BLOCK)),
        b_strips(ceil_div(p.n, FP16X2_BLOCK)),
        k_blocks(ceil_div(p.k, FP16X2_BLOCK)),
        a_slices(0),
        // A tile of the product may reach three strips past the last one. What it reads there goes nowhere.
        b_slices(std::size_t((a_strips + 3) * k_blocks) * FP16X2_BLOCK_BYTES),
        a_exponents(b_slices + std::size_t((b_strips + 3) * k_blocks) * FP16X2_BLOCK_BYTES),
        b_exponents(a_exponents + std::size_t(a_strips + 3) * FP16X2_BLOCK * sizeof(int)),
        guard(b_exponents + std::size_t(b_strips + 3) * FP16X2_BLOCK * sizeof(int)),
        verdict(guard + std::size_t(a_strips + b_strips) * 2 * FP16X2_CLUSTER * sizeof(unsigned)),
        bytes(verdict + 256) {}
};

// The guard in numbers; docs/accuracy.md derives them. Units of u = 2^-24, the rounding error of float32: of the k units
// that the bound allows, `spare` are left when everything else has taken its worst share. Half of them go to numbers
// that are not small, half to those that are.
struct Fp16x2Bound {
  float small, large;  // a scaled number is small below the one, if it is not zero, and large from the other on
  unsigned
      both_large;  // if there are small numbers: for how many k both factors have to be large, for every element of C

  explicit Fp16x2Bound(int64_t k) {
    const double spare = double(k) * 63 / 64 - 51;
    small = float(2 / spare);
    // The scale of a long line leaves a factor 16 of headroom, so its numbers are that much smaller.
    large = k <= 1024 ? 128.0f : 16.0f;
    const double small_error_per_large = spare / 2 * double(large) * double(large) / (1 << 14);
    both_large = unsigned(double(k) / (1 + small_error_per_large)) + 1;
  }
};

// Tiles of the product, and the share of its peak that each reaches.
enum class Fp16x2Tile { tall_256x128, middle_192x128, small_128x64 };
struct Fp16x2Choice {
  Fp16x2Tile tile;
  double rounds_area;  // elements of C that one multiprocessor computes, weighed by the rate of the tile
};
constexpr Fp16x2Choice fp16x2_choice(int64_t m, int64_t n, int64_t multiprocessors) {
  constexpr struct {
    Fp16x2Tile tile;
    int rows, cols;
    double rate;
  } tiles[] = {{Fp16x2Tile::tall_256x128, 256, 128, 1.0},
               {Fp16x2Tile::middle_192x128, 192, 128, 0.95},
               {Fp16x2Tile::small_128x64, 128, 64, 0.85}};
  Fp16x2Choice best{Fp16x2Tile::tall_256x128, 0};
  for (const auto& t : tiles) {
    const int64_t rounds = ceil_div(ceil_div(m, t.rows) * ceil_div(n, t.cols), multiprocessors);
    const double area = double(rounds) * t.rows * t.cols / t.rate;
    if (best.rounds_area == 0 || area < best.rounds_area) best = {t.tile, area};
  }
  return best;
}

// Whether the copy engine can store C. It does so in units of 16 bytes, and beyond the end of a row that is not a multiple
// of them. Other calls use ordinary stores: at k = 1024 a fifth more time, and twice the time if C is read.
inline bool fp16x2_stored_by_boxes(const SgemmArgs& p) {
  return reinterpret_cast<uintptr_t>(p.c.data) % 16 == 0 && p.c.rs % 4 == 0 && p.n % 4 == 0 && p.beta == 0.0f;
}

const char* accurate_only(const SgemmArgs& p);
double fp16x2_cost(const SgemmArgs& p);
std::size_t fp16x2_workspace(const SgemmArgs& p);

}  // namespace fl
