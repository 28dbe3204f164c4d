// Split-K: adds up the sums of the parts of k, in an order that depends on their number alone, scales them back and
// stores them. The scales are those of whole lines, so sums of parts add up as they are.
#pragma once

#include "cuda/kernels/sgemm_accurate/product.cuh"

namespace fl {

struct SplitKReduction {
  SplitKSums from;
  AccurateEpilogue out;
  bool c_by16;             // rows of C start at multiples of 16 bytes
  const unsigned* status;  // of the terms whose scales are in `out`
  bool of_fallback_too;  // whether there are sums in any case: those of the float32 fallback if the terms are rejected

  SplitKReduction(const AccurateProduct& product, const SplitKSums& from, bool of_fallback_too = false)
      : from(from),
        out(product.epilogue()),
        c_by16(aligned<4>(product.p.c.data, product.p.c.rs)),
        status(product.status),
        of_fallback_too(of_fallback_too) {}
};

inline SplitKSums split_k_sums(const AccurateProduct& product, const AccurateSplitK& split_k) {
  return {product.at.sums, split_k.count, split_k.ld, split_k.rows * split_k.ld};
}

// Four threads to four neighbours of a row: each takes every fourth part, and the first adds up what the others have.
constexpr int REDUCTION_DOWN = 4, REDUCTION_ACROSS = 64, REDUCTION_THREADS = REDUCTION_DOWN * REDUCTION_ACROSS;
using ReductionShared = float4[REDUCTION_DOWN][REDUCTION_ACROSS];
constexpr unsigned reduction_blocks(int m, int n) {
  return static_cast<unsigned>(ceil_div(int64_t{m} * ceil_div(n, 4), REDUCTION_ACROSS));
}

// What a block does.
__device__ __forceinline__ void add_up_parts(const SplitKReduction& plan, unsigned status, unsigned block,
                                             ReductionShared& partial) {
  const AccurateEpilogue& out = plan.out;
  const unsigned across = threadIdx.x % REDUCTION_ACROSS, down = threadIdx.x / REDUCTION_ACROSS;
  const unsigned vectors = ceil_div(out.n, 4), vector = block * REDUCTION_ACROSS + across;
  const int row = int(vector / vectors), col = int(vector % vectors) * 4;
  const bool exists = row < out.m, fallback = status & STATUS_REJECTED;
  float4 sum{};
  const auto add = [&](const float4& x) { sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w; };
  if (exists) {
    const float* const from = plan.from.sums + row * plan.from.ld + col;
#pragma unroll 4
    for (int part = int(down); part < plan.from.parts; part += REDUCTION_DOWN)
      add(__ldcg(reinterpret_cast<const float4*>(from + part * plan.from.part_stride)));
  }
  partial[down][across] = sum;
  __syncthreads();
  if (down != 0 || !exists) return;
#pragma unroll
  for (int d = 1; d < REDUCTION_DOWN; ++d) add(partial[d][across]);

  const float4 old = out.beta == 0.0f ? float4{} : out.addend.four(row, col, out.n - col);
  const int e = fallback ? 0 : out.a_exponents[row];
  const auto result = [&](float x, int i, float before) {
    const int back = fallback || col + i >= out.n ? 0 : -e - out.b_exponents[col + i];
    x = (status & STATUS_WIDE ? scale_wide(x, back) : x * power_of_two(back)) * out.alpha;
    return out.beta == 0.0f ? x : fmaf(out.beta, before, x);
  };
  const float4 x{result(sum.x, 0, old.x), result(sum.y, 1, old.y), result(sum.z, 2, old.z), result(sum.w, 3, old.w)};
  if (out.by_columns) write_column(out.column(row, col), x, out.ldc, out.n - col);
  else write_vector(out.c + row * out.ldc + col, x, plan.c_by16, out.n - col);
}

// What all blocks of another kernel do.
__device__ __forceinline__ void add_up_all_parts(const SplitKReduction& plan, unsigned status, char* memory) {
  for (unsigned block = blockIdx.x; block < reduction_blocks(plan.out.m, plan.out.n); block += gridDim.x) {
    add_up_parts(plan, status, block, *reinterpret_cast<ReductionShared*>(memory));
    __syncthreads();
  }
}

}  // namespace fl
