// The instructions of tiles.h in C++, to the bit: what checks the kernels on machines without AMX.
//
// TDPBF16PS, of row i of A and column j of B: the products at even places are one chain of fused multiply-adds from 0,
// those at odd places another; the sum of both is added to C. Everything is rounded to nearest, subnormal numbers are
// zeros as operands and as results, where a result is rounded to 24 bits first, and MXCSR has no say.
#pragma once

#include <stdint.h>
#include <string.h>

#include "tile_shapes.h"

namespace fl {
namespace {

class ModelTiles {
  typedef float V __attribute__((vector_size(16)));
  typedef uint32_t U __attribute__((vector_size(16)));
  static constexpr int lanes = 4, vectors = 4;  // of a row of 16 floats
  struct Data {
    alignas(64) uint32_t row[16][16];
    bool moderate;  // as pairs of bf16: zeros, and magnitudes from 2^-50 to 2^50
  };

 public:
  void configure(const TileShapes& shapes) {
    shapes_ = shapes;
    memset(tiles_, 0, sizeof tiles_);
  }
  void release() {}
  template <int tile>
  void zero() {
    memset(&tiles_[tile], 0, sizeof(Data));
  }
  template <int tile>
  void load(const void* from, int64_t stride) {
    zero<tile>();
    for (int i = 0; i < shapes_.rows[tile]; ++i)
      memcpy(tiles_[tile].row[i], static_cast<const char*>(from) + i * stride, shapes_.row_bytes[tile]);
    tiles_[tile].moderate = all_moderate(tiles_[tile]);
  }
  template <int tile>
  void store(void* to, int64_t stride) {
    for (int i = 0; i < shapes_.rows[tile]; ++i)
      memcpy(static_cast<char*>(to) + i * stride, tiles_[tile].row[i], shapes_.row_bytes[tile]);
  }
  template <int c, int a, int b>
  void multiply() {
    for (int i = 0; i < shapes_.rows[c]; ++i)
      for (int v = 0; v < vectors && v * lanes * 4 < shapes_.row_bytes[c]; ++v)
        (tiles_[a].moderate && tiles_[b].moderate ? multiply_vector<true>
                                                  : multiply_vector<false>)(tiles_[c].row[i] + v * lanes,
                                                                            tiles_[a].row[i], tiles_[b], v,
                                                                            shapes_.row_bytes[a] / 4);
  }

 private:
  static constexpr uint32_t sign = 0x80000000u, least_normal = 0x00800000u, infinite = 0x7f800000u;

  static bool all_moderate(const Data& tile) {
    uint32_t out = 0;
    for (const auto& row : tile.row)
      for (const uint32_t pair : row)
        for (const uint32_t number : {pair << 16, pair & 0xffff0000u}) {
          const uint32_t magnitude = number & ~sign;
          out |= (magnitude != 0) & (magnitude - ((127u - 50) << 23) >= 100u << 23);
        }
    return !out;
  }

  static void flush(V& x) {
    const U bits = (U)x;
    x = (V)((bits & infinite) == 0 ? bits & sign : bits);
  }
  // x * y + z, rounded once; zero where it would be less than normal if exponents had no end.
  static float fused(float x, float y, float z) {
    constexpr float least = 0x1p-126f, up = 0x1p64f;
    const float sum = __builtin_fmaf(x, y, z);
    if (__builtin_fabsf(sum) != least) return sum;
    return __builtin_fabsf(__builtin_fmaf(up * x, y, up * z)) < up * least ? 0 * sum : sum;
  }
  // acc + x * y. The product of two bf16 numbers has 16 bits: exact, unless it is out of float32's range.
  static void add_product(V& acc, const V& x, const V& y) {
    const V product = x * y;
    const U magnitude = (U)product & ~sign, zero = (((U)x & ~sign) == 0) | (((U)y & ~sign) == 0);
    const U in_range = ((magnitude >= least_normal) & (magnitude < infinite)) | zero;
    if (in_range[0] & in_range[1] & in_range[2] & in_range[3]) acc += product;
    else
      for (int l = 0; l < lanes; ++l) acc[l] = fused(x[l], y[l], acc[l]);
    flush(acc);
  }
  // Of moderate numbers products are exact, and sums are multiples of 2^-114: nothing is flushed.
  template <bool moderate>
  static void add_pair(V& acc, uint32_t a, const U& b) {
    V x = (V)(U{} + a), y = (V)b;
    if (moderate) {
      acc += x * y;
    } else {
      flush(x), flush(y);
      add_product(acc, x, y);
    }
  }
  template <bool moderate>
  static void multiply_vector(uint32_t* c, const uint32_t* a, const Data& b, int v, int pairs) {
    V even{}, odd{}, sum;
    for (int k = 0; k < pairs; ++k) {
      U both;
      memcpy(&both, b.row[k] + v * lanes, sizeof both);
      add_pair<moderate>(even, a[k] << 16, both << 16);
      add_pair<moderate>(odd, a[k] & 0xffff0000u, both & 0xffff0000u);
    }
    memcpy(&sum, c, sizeof sum);
    flush(sum);
    V added = even + odd;
    flush(added);
    sum += added;
    flush(sum);
    memcpy(c, &sum, sizeof sum);
  }

  TileShapes shapes_;
  Data tiles_[8];
};

}  // namespace
}  // namespace fl
