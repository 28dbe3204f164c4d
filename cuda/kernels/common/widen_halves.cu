// Lines of float16 or bfloat16 as float32: what has crossed the link in 16 bits. No row of the table: a step of the
// pipeline (cuda/pipeline/panel_driver.h).
//
// Bound: memory, of which it takes a hundredth of the time that the numbers took on the link.
#include "core/halves.h"
#include "core/problem.h"
#include "cuda/kernels/common/launch.cuh"

namespace fl {
namespace {

constexpr unsigned THREADS = 256, PER_THREAD = 4;

template <class Number>
__global__ void __launch_bounds__(THREADS) widen_kernel(HalfLines p) {
  pdl_wait();
#pragma unroll
  for (unsigned k = 0; k < PER_THREAD; ++k) {
    const unsigned i = (blockIdx.x * PER_THREAD + k) * THREADS + threadIdx.x;
    if (i >= p.lines * p.width) return;
    const unsigned line = i / p.width;
    p.to[line * p.to_line + (i - line * p.width)] = to_float(Number{p.from[i]});
  }
}

}  // namespace

void widen_halves(const HalfLines& p, const Context& ctx) {
  const auto blocks = static_cast<unsigned>(ceil_div(int64_t(p.lines) * p.width, THREADS * PER_THREAD));
  if (p.bfloat) launch_kernel<widen_kernel<Bfloat>>({blocks, THREADS}, ctx, p);
  else launch_kernel<widen_kernel<Half>>({blocks, THREADS}, ctx, p);
}

}  // namespace fl
