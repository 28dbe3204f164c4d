// A plan runs on one matrix again and again. Of a matrix somewhat larger than L2 the next run finds nothing there: what
// it reads first has just been replaced. If a part that fits is loaded as usual and the rest is marked as the first to
// be evicted, that part stays (L2 residency). The hardware picks its cache lines by their addresses, the same ones in
// every run; results do not depend on it, and nothing is set on the device.
//
// docs/notes/gemv_transpose.md has the figures: 22 MB kept save 8 to 28 %. Loads that carry a hint are slower where
// nothing comes of it, so a plain call has none.
#pragma once

#include "core/context.h"
#include "core/problem.h"
#include "cuda/kernels/common/halves.cuh"

namespace fl {

// The part of A to keep in L2; 0: everything is loaded as usual, as is all that is in 16 bits.
inline float l2_resident_fraction(const SgemvArgs& p, const Context& ctx) {
  const double bytes = 4.0 * double(p.m) * double(p.n);
  return ctx.repeated && p.batch == 1 && !p.stored[0].converted() && bytes > 45e6 && bytes < 210e6
             ? static_cast<float>(22e6 / bytes)
             : 0.0f;
}

template <bool RESIDENT>
struct MatrixLoad {
  uint64_t policy = 0;
  __device__ __forceinline__ explicit MatrixLoad(float fraction) {
    if constexpr (RESIDENT) policy = ptx::l2_fraction_policy(fraction);
  }
  __device__ __forceinline__ float4 operator()(const float* from) const {
    if constexpr (RESIDENT) return ptx::load4_once(from, policy);
    else return ptx::load4_once(from);
  }
  template <class Number>
  __device__ __forceinline__ float4 operator()(const Number* from) const {
    return load4_once(from);
  }
};

}  // namespace fl
