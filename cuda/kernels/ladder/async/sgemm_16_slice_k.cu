// Step 16 of the ladder: warps share out the lines of k (sliced-K), for matrices with few tiles.
//
// Both kernels here have tiles of 64 x 64 and eight warps, so that 512 x 512 has 64 blocks; copies are those of step
// 10. In `tiles_64x64` the warps stand side by side, which leaves a thread 4 x 4 outputs: at most two thirds of the
// issue slots go to FMAs. In `slice_k` four groups of two warps each compute the whole tile, 8 x 8 a thread, over every
// fourth line of each step; then the groups' sums are added in the order of the groups. The sum of an output is in four
// parts: other bits than a single chain has, and as a rule a smaller error.
#include "cuda/kernels/ladder/async/async_copies.cuh"

namespace fl {
namespace {

template <int GROUPS>
struct SlicedTiles {
  static constexpr int BM = 64, BN = 64, BK = 32, THREADS = 256, GROUP = THREADS / GROUPS;
  static constexpr int TM = GROUPS == 1 ? 4 : 8, TN = TM, LANES_DOWN = TM, LANES_ACROSS = 32 / LANES_DOWN;
  static_assert(GROUPS == 1 || GROUPS == 4, "BM x BN outputs are TM x TN for each thread of a group");

  int group, t, row, col;  // the thread's number in its group; its first output
  float acc[TM][TN];

  __device__ __forceinline__ explicit SlicedTiles(int thread) : group(thread / GROUP), t(thread % GROUP) {
    const Lane lane = GROUPS == 1 ? Lane::across(t % 32) : Lane(t % 32);
    row = t / 64 * 16 + lane.row * 4;
    col = t / 32 % 2 * 32 + lane.col * 4;
  }
  __device__ __forceinline__ void zero() {
#pragma unroll
    for (int q = 0; q < TM * TN; ++q) acc[q / TN][q % TN] = 0.0f;
  }

  template <int A_ROW, int B_ROW>
  __device__ __forceinline__ void multiply(uint32_t a, uint32_t b) {
#pragma unroll
    for (int line = 0; line < BK; line += GROUPS) {
      const int l = line + group;
      float a_frag[TM], b_frag[TN];
#pragma unroll
      for (int i = 0; i < TM; i += 4) unpack(&a_frag[i], ptx::load4(a + (l * A_ROW + row + i * LANES_DOWN) * 4));
#pragma unroll
      for (int j = 0; j < TN; j += 4) unpack(&b_frag[j], ptx::load4(b + (l * B_ROW + col + j * LANES_ACROSS) * 4));
      outer_product(acc, a_frag, b_frag);
    }
  }

  __device__ __forceinline__ void store(const SgemmArgs& p, const BlockTile& block, bool by16) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const sums = reinterpret_cast<float*>(memory) + t;  // where the stages were
    for (int other = 1; other < GROUPS; ++other) {
      __syncthreads();
#pragma unroll
      for (int q = 0; q < TM * TN; ++q)
        if (group == other) sums[q * GROUP] = acc[q / TN][q % TN];
      __syncthreads();
#pragma unroll
      for (int q = 0; q < TM * TN; ++q)
        if (group == 0) acc[q / TN][q % TN] += sums[q * GROUP];
    }
#pragma unroll
    for (int q = 0; q < TM * TN; q += 4) {
      const int i = q / TN, j = q % TN, r = row + i / 4 * LANES_DOWN * 4 + i % 4, c = col + j * LANES_ACROSS;
      if (group == 0 && r < block.rows) store_four(p, block.c + r * p.c.rs + c, &acc[i][j], block.cols - c, by16);
    }
  }
};

}  // namespace

void sgemm_tiles_64x64(const SgemmArgs& p, const Context& ctx) { launch_async_copies<SlicedTiles<1>, 3, 2>(p, ctx); }
void sgemm_slice_k(const SgemmArgs& p, const Context& ctx) { launch_async_copies<SlicedTiles<4>, 3, 2>(p, ctx); }

}  // namespace fl
