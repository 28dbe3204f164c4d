// Tall-skinny products whose long operand is contiguous along the outputs: C[m,n] = A[m,k] B[k,n], n <= 16, columns of
// A contiguous; what A^T B becomes when A is row-major.
//
// A block owns 128 rows of C, four to a lane, or twice as many (TallSkinnyPlan::wide), and its warps take turns along
// k, four k at a time. All lanes of a warp want the same values of B: a read of shared memory serves them all. At the
// end the warps' sums meet in shared memory and are added in the order of the warps.
#pragma once

#include "cuda/kernels/sgemm_tall_skinny/tall_skinny_launch.cuh"

namespace fl {

template <int NR, bool COLUMN_MAJOR, bool WIDE>
struct TallSkinnyColumns {
  static constexpr int QUADS = WIDE ? 2 : 1, OUTPUTS = 128 * QUADS, THREADS = 512 / QUADS;  // fours of rows to a lane
  static constexpr int STEP = 4, SLOTS = 4, SLOT_BYTES = STEP * OUTPUTS * 4;
  static constexpr int NC = NR > 8 ? 4 : NR;  // columns at a time: what registers allow
  using Chunk = TallSkinnyChunk<NR, COLUMN_MAJOR>;
  static constexpr int LANE_PITCH = 4 * QUADS * NR + 4, SUM_BYTES = 32 * LANE_PITCH * 4;  // the sums of a warp
  static constexpr int step_k(int warps) { return STEP * warps; }
  static_assert(SLOTS - 1 <= Chunk::KC / (16 * STEP), "a chunk arrives before the step that it is multiplied with");
  static_assert(2 * Chunk::bytes(Chunk::KC) + THREADS / 32 * SLOTS * SLOT_BYTES <= MOST_SHARED_BYTES,
                "two chunks of B and the rings of all warps fit a block's shared memory");
  static_assert(THREADS / 32 * SUM_BYTES <= MOST_SHARED_BYTES, "and so do the sums of all warps, in their place");
};

template <int NR, bool COLUMN_MAJOR, bool WIDE>
__global__ void __launch_bounds__(most_threads<TallSkinnyColumns<NR, COLUMN_MAJOR, WIDE>>(code_for_sm90), 1)
    tall_skinny_columns_kernel(const __grid_constant__ TallSkinnyArgs args) {
#if __CUDA_ARCH__ >= 800
  using T = TallSkinnyColumns<NR, COLUMN_MAJOR, WIDE>;
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const SgemmArgs& p = args.p;
  const TallSkinnyBlock at = TallSkinnyBlock::of<NR>(args, T::OUTPUTS);
  const int rows = static_cast<int>(min(p.m - at.row, int64_t{T::OUTPUTS}));
  const int count = static_cast<int>(at.count), stride = T::STEP * warps;
  TallSkinnyCopy<T::STEP, T::OUTPUTS> copy(p.a.data + at.batch * p.a.bs + at.row + (at.k + T::STEP * warp) * p.a.cs,
                                           p.a.cs, stride * p.a.cs, args.a_by16, lane);
  pdl_wait();

  constexpr int E = 4 * T::QUADS;
  float acc[E][NR] = {};
  walk_k<T>(
      args, at, shared, (count + stride - 1) / stride, T::Chunk::KC / stride, stride / 2 * T::Chunk::PAIR,
      [&](int step, uint32_t to) { copy.step(to, count - step * stride - T::STEP * warp, rows); },
      [&](uint32_t a, uint32_t b) {
        b += T::Chunk::place(T::STEP * warp, 0);
        a += 16 * lane;
#pragma unroll
        for (int k = 0; k < T::STEP; k += 2) {
          float4 v0[T::QUADS], v1[T::QUADS];
#pragma unroll
          for (int q = 0; q < T::QUADS; ++q) {
            v0[q] = ptx::load4(a + (k * T::OUTPUTS + q * 128) * 4);
            v1[q] = ptx::load4(a + ((k + 1) * T::OUTPUTS + q * 128) * 4);
          }
#pragma unroll
          for (int col = 0; col < NR; col += T::NC) {
            float x[2][T::NC];
            T::Chunk::load_pair(x, b + T::Chunk::place(k, col));
#pragma unroll
            for (int e = 0; e < E; ++e)
#pragma unroll
              for (int c = 0; c < T::NC; ++c)
                acc[e][col + c] = fmaf(component(v1[e / 4], e % 4), x[1][c],
                                       fmaf(component(v0[e / 4], e % 4), x[0][c], acc[e][col + c]));
          }
        }
      });

  pdl_launch_next();  // earlier, the next kernel's blocks would land unevenly
  ptx::wait_copies<0>();
  __syncthreads();  // the rings are free: the sums take their place
#pragma unroll
  for (int e = 0; e < E * NR; e += 4)
    ptx::store4(shared + warp * T::SUM_BYTES + (lane * T::LANE_PITCH + e) * 4,
                {acc[e / NR][e % NR], acc[(e + 1) / NR][(e + 1) % NR], acc[(e + 2) / NR][(e + 2) % NR],
                 acc[(e + 3) / NR][(e + 3) % NR]});
  __syncthreads();
  const float* sums = reinterpret_cast<const float*>(memory);
  for (int output = threadIdx.x; output < T::OUTPUTS * NR; output += blockDim.x) {
    const int row = output / NR, col = output % NR;
    const float* from = sums + row % 128 / 4 * T::LANE_PITCH + (row / 128 * 4 + row % 4) * NR + col;
    float sum = 0.0f;
    for (int w = 0; w < warps; ++w) sum += from[w * (T::SUM_BYTES / 4)];
    put(args, at, at.row + row, col, sum);
  }
#else
  not_for_this_target();
#endif
}

template <int NR, bool WIDE>
void tall_skinny_columns(const SgemmArgs& p, const TallSkinnyPlan& plan, const Context& ctx) {
  if (p.b.cs == 1)
    return launch_tall_skinny<TallSkinnyColumns<NR, false, WIDE>, tall_skinny_columns_kernel<NR, false, WIDE>>(p, plan,
                                                                                                               ctx);
  launch_tall_skinny<TallSkinnyColumns<NR, true, WIDE>, tall_skinny_columns_kernel<NR, true, WIDE>>(p, plan, ctx);
}

}  // namespace fl
