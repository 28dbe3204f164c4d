// Step 1 of the ladder: one thread per element of C, and threadIdx.x walks down M.
//
// The 32 threads of a warp then read 32 different rows of A and write 32 different rows of C: each touches a sector of
// its own (32 bytes fetched for 4 used). The next step, sgemm_02_coalesced.cu, changes nothing but which index
// threadIdx.x walks.
#include "cuda/kernels/common/epilogue.cuh"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"

namespace fl {
namespace {
namespace step_1 {

constexpr int BM = 32, BN = 32, THREADS = BM * BN;

__global__ void __launch_bounds__(THREADS) sgemm_naive_kernel(SgemmArgs p, TileGrid grid) {
  const Tile tile = grid.tile(blockIdx.x);
  const int64_t i = tile.row * BM + threadIdx.x;
  const int64_t j = tile.col * BN + threadIdx.y;
  if (i >= p.m || j >= p.n) return;

  const float* a = p.a.data + tile.batch * p.a.bs + i * p.a.rs;
  const float* b = p.b.data + tile.batch * p.b.bs + j * p.b.cs;
  float acc = 0.0f;
  for (int64_t l = 0; l < p.k; ++l) acc = fmaf(a[l * p.a.cs], b[l * p.b.rs], acc);
  store(p, tile.batch, i, j, acc);
}

}  // namespace step_1
}  // namespace

void sgemm_naive(const SgemmArgs& p, const Context& ctx) {
  using namespace step_1;
  const TileGrid grid(p.m, p.n, p.batch, BM, BN);
  sgemm_naive_kernel<<<grid.blocks(), dim3(BM, BN), 0, stream(ctx)>>>(p, grid);
}

}  // namespace fl
