// Which tile a product with a short k gets, whose bits do not depend on it.
#pragma once

#include "core/problem.h"
#include "plan/reference_device.h"
#include "plan/strict/split_k_plan.h"
#include "plan/strict/warp_tiles.h"

namespace fl {

// Where there are enough for all multiprocessors a square one, or a wider one where storing C is all there is to do;
// else smaller ones with more stages, so few that four to a multiprocessor hold them all.
inline const ShortKTile& short_k_tile(const SgemmArgs& p) {
  const bool fills = tiles_of(p, short_k_large) >= PLAN_MULTIPROCESSORS;
  if (fills && p.k <= 16 && p.n >= 128) return short_k_large;
  return fills || tiles_of(p, short_k_square) >= 256 ? short_k_square : short_k_few;
}

}  // namespace fl
