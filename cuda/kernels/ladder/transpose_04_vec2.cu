// A 2 x 2 patch per thread with 8-byte accesses: the pattern of vec4_rows at a quarter of the data per thread. Rows and
// leading dimensions need only 8-byte alignment.
//
// 32-byte sectors, bytes used per warp:
//   8 x 8 threads    reads 100 % (4 rows of 64 bytes per load),   writes 100 % (8 rows of 32 bytes)
//   16 x 16 threads  reads 100 % (2 rows of 128 bytes per load),  writes 50 %  (16 rows of 16 bytes)
// Bound: two loads of 8 bytes in flight per thread, a quarter of what vec4 has, and twice the instructions per byte.
#include "cuda/kernels/ladder/transpose_patch.cuh"

namespace fl {
namespace {

constexpr int SIDE = 2;

template <int BX, int BY>
__global__ void __launch_bounds__(BX* BY) transpose_vec2_kernel(TransposeArgs p, TileGrid grid) {
  const Patch patch = thread_patch<SIDE>(p, grid);
  if (patch.rows < SIDE || patch.cols < SIDE) return transpose_edge<SIDE>(patch, p.a.rs, p.b.rs);
  const float2 upper = __ldg(reinterpret_cast<const float2*>(patch.a));
  const float2 lower = __ldg(reinterpret_cast<const float2*>(patch.a + p.a.rs));
  write(patch.b, make_float2(upper.x, lower.x));
  write(patch.b + p.b.rs, make_float2(upper.y, lower.y));
}

template <int BX, int BY>
void launch_vec2(const TransposeArgs& p, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, SIDE * BY, SIDE * BX);
  transpose_vec2_kernel<BX, BY><<<grid.blocks(), dim3(BX, BY), 0, stream(ctx)>>>(p, grid);
}

}  // namespace

void transpose_vec2(const TransposeArgs& p, const Context& ctx) { launch_vec2<8, 8>(p, ctx); }
void transpose_vec2_16x16(const TransposeArgs& p, const Context& ctx) { launch_vec2<16, 16>(p, ctx); }

}  // namespace fl
