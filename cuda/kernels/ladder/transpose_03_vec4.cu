// A 4 x 4 patch per thread: rows of four are read and rows of four are written, turned in registers. Three ways to
// order the accesses, with 8 x 8 threads (a 32 x 32 tile); the best of them also with 16 x 16.
//
// 32-byte sectors, bytes used per warp (8 x 8 threads: a warp is 4 patches high and 8 wide):
//   direct   reads 25 %  (4 bytes of every 16, the rest of a sector from L1), writes 100 % (8 rows of 64 bytes)
//   rows     reads 100 % (4 rows of 128 bytes per load),                       writes 100 %
//   staged   as rows: the compiler makes the same instructions of both
//   16 x 16  reads 100 % (2 rows of 256 bytes),                                writes 100 % (16 rows of 32 bytes)
// Bound: memory. Four loads are in flight per thread before the first store, no shared memory, no barrier.
#include "cuda/kernels/ladder/transpose_patch.cuh"

namespace fl {
namespace {

constexpr int T = 4;

// Every element straight from its place in A into the row of B it belongs to. A store may change what the next read
// sees, for all the compiler knows, so that no float4 of A stays in registers: sixteen 4-byte reads.
struct Direct {
  static __device__ void turn(const float* a, int64_t lda, float* b, int64_t ldb) {
#pragma unroll
    for (int c = 0; c < T; ++c) write(b + c * ldb, make_float4(a[c], a[lda + c], a[2 * lda + c], a[3 * lda + c]));
  }
};

__device__ __forceinline__ void read_patch(float4 (&rows)[T], const float* a, int64_t lda) {
#pragma unroll
  for (int r = 0; r < T; ++r) rows[r] = __ldg(reinterpret_cast<const float4*>(a + r * lda));
}

// Four float4 of A, then each row of B is written as soon as it is assembled.
struct Rows {
  static __device__ void turn(const float* a, int64_t lda, float* b, int64_t ldb) {
    float4 from[T];
    read_patch(from, a, lda);
    write(b, make_float4(from[0].x, from[1].x, from[2].x, from[3].x));
    write(b + ldb, make_float4(from[0].y, from[1].y, from[2].y, from[3].y));
    write(b + 2 * ldb, make_float4(from[0].z, from[1].z, from[2].z, from[3].z));
    write(b + 3 * ldb, make_float4(from[0].w, from[1].w, from[2].w, from[3].w));
  }
};

// All four rows of B assembled, then all written.
struct Staged {
  static __device__ void turn(const float* a, int64_t lda, float* b, int64_t ldb) {
    float4 from[T];
    read_patch(from, a, lda);
    const float4 to[T] = {make_float4(from[0].x, from[1].x, from[2].x, from[3].x),
                          make_float4(from[0].y, from[1].y, from[2].y, from[3].y),
                          make_float4(from[0].z, from[1].z, from[2].z, from[3].z),
                          make_float4(from[0].w, from[1].w, from[2].w, from[3].w)};
#pragma unroll
    for (int c = 0; c < T; ++c) write(b + c * ldb, to[c]);
  }
};

template <class Variant, int BX, int BY>
__global__ void __launch_bounds__(BX* BY) transpose_vec4_kernel(TransposeArgs p, TileGrid grid) {
  const Patch patch = thread_patch<T>(p, grid);
  if (patch.rows >= T && patch.cols >= T) Variant::turn(patch.a, p.a.rs, patch.b, p.b.rs);
  else transpose_edge<T>(patch, p.a.rs, p.b.rs);
}

template <class Variant, int BX, int BY>
void launch(const TransposeArgs& p, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, T * BY, T * BX);
  transpose_vec4_kernel<Variant, BX, BY><<<grid.blocks(), dim3(BX, BY), 0, stream(ctx)>>>(p, grid);
}

}  // namespace

void transpose_vec4_direct(const TransposeArgs& p, const Context& ctx) { launch<Direct, 8, 8>(p, ctx); }
void transpose_vec4_rows(const TransposeArgs& p, const Context& ctx) { launch<Rows, 8, 8>(p, ctx); }
void transpose_vec4_rows_16x16(const TransposeArgs& p, const Context& ctx) { launch<Rows, 16, 16>(p, ctx); }
void transpose_vec4_staged(const TransposeArgs& p, const Context& ctx) { launch<Staged, 8, 8>(p, ctx); }

}  // namespace fl
