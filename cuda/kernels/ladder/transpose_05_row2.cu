// Two neighbouring columns of one row per thread, a step between the naive kernel and the 2 x 2 patch: twice the data
// per thread, yet no alignment needed, because both elements are read and written as single floats.
//
// 32-byte sectors: 4 x 8 threads make a warp's piece of A 8 rows of 8 floats. The two reads of a thread use a sector of
// each row together (50 % per load, the second from L1), and a store of the warp fills 4 sectors of B: writes 100 %.
// Four such warps lie beside each other, so that a block reads rows of 128 bytes.
// Bound: two 4-byte loads in flight per thread, an eighth of vec4's bytes: latency more than memory.
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"

namespace fl {
namespace {

constexpr int LANE_ROWS = 8, PAIRS = 4, WARPS = 4;  // threads of a warp down and across, warps across
constexpr int BLOCK_THREADS = LANE_ROWS * PAIRS * WARPS;

__global__ void __launch_bounds__(BLOCK_THREADS) transpose_row2_kernel(TransposeArgs p, TileGrid grid) {
  const Tile tile = grid.tile(blockIdx.x);
  const int64_t i = tile.row * LANE_ROWS + threadIdx.y;
  const int64_t j = ((tile.col * WARPS + threadIdx.z) * PAIRS + threadIdx.x) * 2;
  if (i >= p.m || j >= p.n) return;

  const float* a = p.a.data + tile.batch * p.a.bs + i * p.a.rs + j;
  float* b = p.b.data + tile.batch * p.b.bs + j * p.b.rs + i;
  const bool pair = j + 1 < p.n;
  const float left = __ldg(a);
  const float right = pair ? __ldg(a + 1) : 0.0f;
  b[0] = left;
  if (pair) b[p.b.rs] = right;
}

}  // namespace

void transpose_row2(const TransposeArgs& p, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, LANE_ROWS, PAIRS * WARPS * 2);
  transpose_row2_kernel<<<grid.blocks(), dim3(PAIRS, LANE_ROWS, WARPS), 0, stream(ctx)>>>(p, grid);
}

}  // namespace fl
