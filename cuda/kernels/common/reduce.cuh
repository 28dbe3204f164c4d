// Sums over lanes of a warp. The order of the additions depends on lane numbers alone, so the bits are always the same.
#pragma once

#include <cuda_runtime.h>

namespace fl {

// Adds R values per lane over every group of L neighbouring lanes. While a lane carries several values, an exchange
// gives away half of them and adds the partner's half to the rest: R + log2(L / R) - 1 shuffles instead of R * log2(L)
// (for R <= L), and the sums end up in different lanes, ready to be stored together. GroupSum says where.
// STRIDE > 1: a group is L lanes STRIDE apart instead.
template <int L, int R, int STRIDE = 1, int N>
__device__ __forceinline__ void sum_over_group(float (&v)[N], unsigned lane) {
  if constexpr (L > 1) {
    constexpr int half = L / 2;
    if constexpr (R > 1) {
      const bool upper = lane & (half * STRIDE);
#pragma unroll
      for (int i = 0; i < R / 2; ++i) {
        const float keep = upper ? v[i + R / 2] : v[i];
        const float give = upper ? v[i] : v[i + R / 2];
        v[i] = keep + __shfl_xor_sync(0xffffffffu, give, half * STRIDE);
      }
      sum_over_group<half, R / 2, STRIDE>(v, lane);
    } else {
      v[0] += __shfl_xor_sync(0xffffffffu, v[0], half * STRIDE);
      sum_over_group<half, 1, STRIDE>(v, lane);
    }
  }
}

// After sum_over_group<L, R>, lane l of a group holds in v[i], i < kept, the sum number l / spread * kept + i.
template <int L, int R>
struct GroupSum {
  static constexpr int kept = R > L ? R / L : 1;
  static constexpr int spread = L > R ? L / R : 1;
};

}  // namespace fl
