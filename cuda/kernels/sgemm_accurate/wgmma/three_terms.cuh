// The fallback of fp16x2 where three bf16 terms can hold what two fp16 terms cannot: the product of bf16x6, of operands
// that are read as they are and split on their way into shared memory. It needs neither a split pass nor a workspace of
// its own, so it runs in the kernel whose terms were rejected, or costs one launch behind it, and the scales are those
// that the split pass has left.
//
// Of twelve warps each splits 16 lines of a stage, and the first eight multiply the stage before meanwhile, 64 rows to
// a warpgroup.
#pragma once

#include "cuda/kernels/sgemm_accurate/fallback/fallback_tile.cuh"
#include "cuda/kernels/sgemm_accurate/split/thread_map.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/pipeline.cuh"

namespace fl {

using ThreeTerms = Wgmma<bf16x6_unsplit>;
using WarpSplit = SplitShape<32, 4>;
static_assert(WarpSplit::PIECE == TERM_BLOCK, "a warp splits 16 lines of a stage");
static_assert(ThreeTerms::THREADS / 32 * SPLIT_LINES == ThreeTerms::BM + ThreeTerms::BN);

// Of a line that two terms have multiplied by 2^e.
__device__ __forceinline__ int exponent_of_three(int e) { return min(e + Bf16Terms::TOP - Fp16Terms::TOP, 127); }

// 16 lines of an operand by one warp: a block of 64 k is read, and split into a stage later.
template <bool IS_B, bool K_CONTIGUOUS>
struct WarpSplitter {
  using S = Bf16Terms;
  using Map = SplitThreadMap<WarpSplit, IS_B, K_CONTIGUOUS, false>;
  const SplitOperand& x;
  int64_t k, line0;
  float v[WarpSplit::CHUNKS][8], scale[Map::LINES];

  __device__ __forceinline__ WarpSplitter(const SplitOperand& x, int64_t k, int64_t line0) : x(x), k(k), line0(line0) {
    const Map at = map();
#pragma unroll
    for (int i = 0; i < Map::LINES; ++i) scale[i] = power_of_two(exponent_of_three(x.exponents[line0 + at.line(i)]));
  }
  static __device__ __forceinline__ Map map() { return Map{ptx::thread_index() % 32}; }

  __device__ __forceinline__ void read(int step) {
    const int64_t from = int64_t{step} * TERM_BLOCK;
    if (x.by16 && line0 + SPLIT_LINES <= x.lines && from + TERM_BLOCK <= k)
      read_piece<true>(v, x, map(), line0, from, k);
    else read_piece<false>(v, x, map(), line0, from, k);
  }

  // To the `quarter` of a block of 64 lines at `to`.
  __device__ __forceinline__ void write(char* to, unsigned quarter) const {
    const Map at = map();
#pragma unroll
    for (int g = 0; g < WarpSplit::CHUNKS; ++g) {
      alignas(16) S::Pair cut[S::COUNT][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float2 rest{v[g][2 * i] * scale[Map::index(g, 2 * i)], v[g][2 * i + 1] * scale[Map::index(g, 2 * i + 1)]};
#pragma unroll
        for (int s = 0; s < S::COUNT; ++s) {
          cut[s][i] = S::pair(rest.x, rest.y);
          const float2 rounded = S::floats(cut[s][i]);
          rest.x -= rounded.x, rest.y -= rounded.y;
        }
      }
#pragma unroll
      for (int s = 0; s < S::COUNT; ++s) {
        char* const term = to + s * TERM_BYTES;
        if constexpr (Map::PAIRS) {
#pragma unroll
          for (int i = 0; i < 4; ++i)
            *reinterpret_cast<S::Pair*>(term + at.offset_of_pair(g * 4 + i, quarter)) = cut[s][i];
        } else {
          *reinterpret_cast<uint4*>(term + at.offset(g, quarter)) = *reinterpret_cast<const uint4*>(cut[s]);
        }
      }
    }
  }
};

__device__ __forceinline__ void store_three_terms(const AccurateEpilogue& out, const TileCorner<int>& corner,
                                                  const float (&acc)[ThreeTerms::BN / 2]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const bool by16 = (reinterpret_cast<uintptr_t>(out.c) | static_cast<uintptr_t>(out.ldc * 4)) % 16 == 0;
#pragma unroll
  for (int i = 0; i < ThreeTerms::VECTORS; ++i) {
    const int row = corner.row * ThreeTerms::BM + warp * 16 + lane / 4 + i / 2 % 2 * 8;
    const int col = corner.col * ThreeTerms::BN + i / 4 * 32 + i % 2 * 16 + lane % 4 * 4;
    if (row >= out.m || col >= out.n) continue;
    const int down = exponent_of_three(out.a_exponents[row]), exist = out.n - col;
    const float4 sums = vector_of(acc, i);
    const float4 old = out.beta == 0.0f ? float4{} : out.addend.four(row, col, exist);
    const auto result = [&](float sum, int j, float before) {
      const float x = scale_wide(sum, -down - exponent_of_three(out.b_exponents[col + j])) * out.alpha;
      return out.beta == 0.0f ? x : fmaf(out.beta, before, x);
    };
    write_vector(
        out.c + row * out.ldc + col,
        {result(sums.x, 0, old.x), result(sums.y, 1, old.y), result(sums.z, 2, old.z), result(sums.w, 3, old.w)}, by16,
        exist);
  }
}

// The part of the warps that split A, and multiply, or of those that split B.
template <bool IS_B, bool K_CONTIGUOUS>
__device__ __forceinline__ void three_term_tiles(const SgemmArgs& p, const AccurateEpilogue& out, bool by16,
                                                 char* memory) {
  using T = ThreeTerms;
  const ConstMatrix& from = IS_B ? p.b : p.a;
  const SplitOperand x{from.data,
                       IS_B == K_CONTIGUOUS ? from.cs : from.rs,
                       IS_B ? p.n : p.m,
                       K_CONTIGUOUS,
                       by16,
                       nullptr,
                       nullptr,
                       const_cast<int*>(IS_B ? out.b_exponents : out.a_exponents)};
  const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0), warp = threadIdx.x / 32 - (IS_B ? 8 : 0);
  char* const stages = memory + (-ptx::shared_address(memory) & 1023);
  char* const own = stages + (IS_B ? T::A_CHUNKS : group) * T::A_BYTES;
  const StageOperands<T> operands({ptx::shared_address(stages), 0, 0, 0}, IS_B ? 0 : group);
  const int rows = ceil_div(out.m, T::BM), cols = ceil_div(out.n, T::BN);
  const auto steps = static_cast<int>(ceil_div(p.k, TERM_BLOCK));
  const auto stage_is_there = [] {
    ptx::async_proxy_fence();
    ptx::named_barrier_sync(4, T::THREADS);
  };
  for (int tile = blockIdx.x; tile < rows * cols; tile += gridDim.x) {
    const TileCorner<int> corner = banded_tile(tile, rows, cols, 8);
    WarpSplitter<IS_B, K_CONTIGUOUS> lines(x, p.k,
                                           (IS_B ? corner.col * T::BN : corner.row * T::BM) + warp * SPLIT_LINES);
    float acc[T::BN / 2] = {}, sum[T::BN / 2];
    lines.read(0);
    lines.write(own, warp % 4);
    lines.read(1);
    stage_is_there();
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      const int stage = step % 2;
      if constexpr (!IS_B) {
        ptx::wgmma_fence();
        operands.multiply(sum, stage, 0);
        ptx::wgmma_commit();
      }
      if (step + 1 < steps) {
        lines.write(own + (1 - stage) * T::STAGE_BYTES, warp % 4);
        lines.read(step + 2);
      }
      if constexpr (!IS_B) {
        ptx::wgmma_wait_all();
        ptx::written(sum);
#pragma unroll
        for (int i = 0; i < T::BN / 2; ++i) acc[i] += sum[i];
      }
      stage_is_there();
    }
    if constexpr (!IS_B) store_three_terms(out, corner, acc);
  }
}

// By the first THREADS of each block.
template <bool TA, bool TB>
__device__ __forceinline__ void fall_back_to_three_terms(const SgemmArgs& p, const AccurateEpilogue& out, bool by16,
                                                         char* memory) {
  if (threadIdx.x < 256) three_term_tiles<false, !TA>(p, out, by16, memory);
  else if (threadIdx.x < ThreeTerms::THREADS) three_term_tiles<true, TB>(p, out, by16, memory);
}
__device__ __forceinline__ void fall_back_to_three_terms(const Fallback& plan, const AccurateEpilogue& out,
                                                         char* memory) {
  if (threadIdx.x < 256)
    plan.ta ? three_term_tiles<false, false>(plan.args, out, plan.by16, memory)
            : three_term_tiles<false, true>(plan.args, out, plan.by16, memory);
  else if (threadIdx.x < ThreeTerms::THREADS)
    plan.tb ? three_term_tiles<true, true>(plan.args, out, plan.by16, memory)
            : three_term_tiles<true, false>(plan.args, out, plan.by16, memory);
}

}  // namespace fl
