// Step 2 of the ladder: one thread per element of C, and threadIdx.x walks along N.
//
// The 32 threads of a warp now read one element of A, the same for all, and 32 neighbours of a row of B, and write
// 32 neighbours of a row of C: 4 sectors of 32 bytes, every byte used. Against step 1 only the two index lines and
// the order of the block's sides differ.
//
// Each FMA still needs two loads of its own, and the load units take one warp a cycle where the FMA pipes take
// four: at best one part in eight of the peak. The next step, sgemm_03_smem.cu, fetches each element once for 32
// outputs.
#include "cuda/kernels/common/epilogue.cuh"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"

namespace fl {
namespace {
namespace step_2 {

constexpr int BM = 32, BN = 32, THREADS = BM * BN;

__global__ void __launch_bounds__(THREADS) sgemm_coalesced_kernel(SgemmArgs p, TileGrid grid) {
  const Tile tile = grid.tile(blockIdx.x);
  const int64_t i = tile.row * BM + threadIdx.y;
  const int64_t j = tile.col * BN + threadIdx.x;
  if (i >= p.m || j >= p.n) return;

  const float* a = p.a.data + tile.batch * p.a.bs + i * p.a.rs;
  const float* b = p.b.data + tile.batch * p.b.bs + j * p.b.cs;
  float acc = 0.0f;
  for (int64_t l = 0; l < p.k; ++l) acc = fmaf(a[l * p.a.cs], b[l * p.b.rs], acc);
  store(p, tile.batch, i, j, acc);
}

}  // namespace step_2
}  // namespace

void sgemm_coalesced(const SgemmArgs& p, const Context& ctx) {
  using namespace step_2;
  const TileGrid grid(p.m, p.n, p.batch, BM, BN);
  sgemm_coalesced_kernel<<<grid.blocks(), dim3(BN, BM), 0, stream(ctx)>>>(p, grid);
}

}  // namespace fl
