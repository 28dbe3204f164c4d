// precision="reproducible" by the smallest kernel there is, a thread to an output: for products as short as a launch.
// The loop over a block of k is that of sgemm_strict_element.cu.
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/sgemm_reproducible/chain_of_a_thread.cuh"
#include "cuda/kernels/sgemm_reproducible/order.cuh"

namespace fl {
namespace {

constexpr int THREADS = 128, AT_A_TIME = 8;

__global__ void __launch_bounds__(THREADS)
    reproducible_element_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ TileGrid grid) {
  const Tile tile = grid.tile(blockIdx.x);
  const int64_t output = tile.col * THREADS + threadIdx.x;
  if (output >= p.m * p.n) return;
  const int64_t i = output / p.n, j = output - i * p.n;
  const float* a = p.a.data + tile.batch * p.a.bs + i * p.a.rs;
  const float* b = p.b.data + tile.batch * p.b.bs + j * p.b.cs;
  float* const c = p.c.data + tile.batch * p.c.bs + i * p.c.rs + j * p.c.cs;
  pdl_wait();
  float result = p.beta == 0.0f ? 0.0f : *c;
  int64_t first = 0;
  do {  // an empty sum too
    const int64_t end = min(p.k, first + REPRODUCIBLE_BLOCK);
    const float sum = chain_of_fmas<AT_A_TIME>(a, p.a.cs, b, p.b.rs, first, end);
    result = BlockUpdate(p, first == 0)(sum, result);
    first += REPRODUCIBLE_BLOCK;
  } while (first < p.k);
  pdl_launch_next();
  *c = result;
}

}  // namespace

void sgemm_reproducible_element(const SgemmArgs& p, const Context& ctx) {
  const TileGrid grid(1, p.m * p.n, p.batch, 1, THREADS);
  launch_kernel<reproducible_element_kernel>({grid.blocks(), THREADS}, ctx, with_empty_sum(p), grid);
}

}  // namespace fl
