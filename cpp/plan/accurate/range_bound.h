// The range check in numbers: what the status of a product says, and from where on two fp16 terms hold a number.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/problem.h"
#include "plan/terms.h"

namespace fl {

// The status that a product leaves for the kernels behind it, and for the log, in the first words of the workspace.
constexpr unsigned STATUS_REJECTED = 1;  // the terms cannot hold these operands: a fallback computes the product
constexpr unsigned STATUS_WIDE = 2;      // scales so far from 1 that they are applied in two steps
constexpr unsigned STATUS_NOT_FINITE = 4;
constexpr unsigned STATUS_DONE = 8;  // other terms, tried before these, have computed the product
constexpr unsigned STATUS_ELSEWHERE = STATUS_REJECTED | STATUS_DONE;  // these terms do not compute it
constexpr unsigned STATUS_COMPENSATE = 16;  // the tensor cores truncate sums of this product: compensate for that

// What a product of two fp16 terms costs of the bound besides k / 64, in units of u: with Hopper's instructions, and
// with those of every GPU since compute capability 8.0, where older tensor cores cut more of what they add.
// MMA_K8_ERROR is that of 7.5, whose tensor cores cut yet more, at 32 k to a promotion instead of 64.
constexpr int WGMMA_ERROR = 55, MMA_ERROR = 97, MMA_K8_ERROR = 105;

// Where the products of second terms have sums of their own, and what these terms are multiplied by there: fp16 holds
// those of numbers 2^11 times as small. Such sums cost of the bound as much as if first ones left every 32 k.
constexpr int APART_ERROR = 56, APART_PROMOTED_K = 32;
constexpr float SECOND_TERM_SCALE = 0x1p11f;

// The range check in numbers; docs/accuracy.md derives them. Units of u = 2^-24, the rounding error of float32: of the
// k units that the bound allows, `spare` are left when everything else has taken its worst share. Half of them go to
// numbers that are not small, half to those that are.
struct RangeBound {
  float small, large;  // a scaled number is small below the one, if it is not zero, and large from the other on
  // If there are small numbers: large ones are measured from 2^level down, and these are the octaves that are allowed.
  int level = 0;
  float octaves;
  // Whether small numbers are less than float32's smallest in a product of lines whose numbers are below TALL.
  bool small_if_tall = false;
  float second_scale = 1;  // what second terms are multiplied by

  RangeBound(Terms terms, int64_t k, int product_error = WGMMA_ERROR, int promoted_k = 64, float second_scale = 1)
      : second_scale(second_scale) {
    if (terms == Terms::bf16x6) {
      small = 0x1p-50f, large = 0x1p-22f, octaves = 1e30f, small_if_tall = true;
      return;
    }
    const double spare = double(k) * (promoted_k - 1) / promoted_k - product_error;
    const bool scaled = second_scale != 1;
    small = float(scaled ? std::max(0x1p-12 / std::sqrt(spare), 0x1p-17) : 2 / spare);
    // Larger than what is small in fp16 as well, and none of fp16's subnormal numbers.
    large = std::max(small * 1.0078125f, 0x1p-14f);
    level = (k <= ONE_PIECE ? SHORT_TOP : LONG_TOP) - 5;
    octaves = float(std::log2(spare) + 2 * level + (scaled ? 10 : 0)) - 0.01f;
  }

  static constexpr int TALL = 10;             // exponent of the numbers of a tall line
  static constexpr int64_t ONE_PIECE = 1024;  // of k: up to here the split pass holds all of a line
  // Scaled numbers of two terms are below 2^SHORT_TOP, and the largest of a long line is from 2^(LONG_TOP - 1) on, as
  // its scale leaves a factor 16 of headroom.
  static constexpr int SHORT_TOP = 15, LONG_TOP = 11;
};

// Whether bf16x6 is tried where fp16x2 is rejected. Its two launches take about 5 us of every call, and it is three
// times as fast as the float32 fallback behind it.
constexpr bool has_bf16x6_fallback(const SgemmArgs& p) { return double(p.m) * double(p.n) * double(p.k) >= 0x1p34; }

}  // namespace fl
