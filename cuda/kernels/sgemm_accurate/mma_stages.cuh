// How the slices come into shared memory for mma_product.cuh: by cp.async, which every GPU from capability 8.0 on has.
#pragma once

#include "cuda/kernels/common/ptx.cuh"
#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/sgemm_accurate/sliced_epilogue.cuh"
#include "cuda/kernels/sgemm_accurate/sliced_verdict.cuh"

namespace fl {

// MT fragments of 16 rows and four of 8 columns for each of WARP_ROWS x 4 warps. A stage is 32 k deep: three of them
// take 96 KiB, and most GPUs lend a block no more than 99. Behind the stages lie the exponents of the lines of two
// tiles, and the verdict.
template <int MT_, int WARP_ROWS_>
struct MmaTile {
  static constexpr int MT = MT_, NT = 4, WARP_ROWS = WARP_ROWS_, WARP_COLS = 4, BK = 32;
  static constexpr int STAGES = 3, AHEAD = (STAGES - 1) / 2;  // how many blocks of 64 k are on their way
  static constexpr int BM = 16 * MT * WARP_ROWS, BN = 8 * NT * WARP_COLS, THREADS = 32 * WARP_ROWS * WARP_COLS;
  static constexpr int A_SLICE = BM * BK * 2, B_SLICE = BN * BK * 2, STAGE_BYTES = 2 * (A_SLICE + B_SLICE);
  static constexpr int EXPONENTS = STAGES * STAGE_BYTES, EXPONENT_BYTES = (BM + BN) * 4;
  static constexpr int VERDICT = EXPONENTS + 2 * EXPONENT_BYTES, SHARED_BYTES = VERDICT + int(sizeof(VerdictShared));
  static_assert(THREADS == 256 && BM % SLICE_BLOCK == 0, "a thread copies 16 bytes of every 64 lines by 32 k");
  static_assert(STAGES % 2 == 1 && AHEAD * SLICE_BLOCK <= SLICED_SMALLEST_K);
};

struct MmaPlan {
  const char *a, *b;  // slices
  int k_blocks, tile_rows, tile_cols;
  bool by16;  // C takes 16-byte accesses
  Guard guard;
  Epilogue out;
};

struct MmaCorner {
  int row, col;
};
template <class T>
__device__ __forceinline__ MmaCorner corner_of(const MmaPlan& plan, int tile) {
  const auto corner = banded_tile(tile, plan.tile_rows, plan.tile_cols, 8);
  return {corner.row * T::BM, corner.col * T::BN};
}

// Copies what lies next in the slices. Nothing here is conditional, so that the copies may be issued between products;
// a block without another tile copies its last one again, which nobody reads.
template <class T>
class MmaFiller {
 public:
  __device__ __forceinline__ MmaFiller(const MmaPlan& plan, uint32_t shared) : plan_(plan), shared_(shared) {
    const unsigned row = threadIdx.x / 4, chunk = threadIdx.x % 4;
    to_ = row * 64 + ((chunk ^ row / 2 % 4) << 4);
  }

  // The exponents come with the first stage: the registers that the sums leave do not hold as many loads as it takes to
  // hide their latency when they are wanted.
  __device__ __forceinline__ void begin_tile(int tile, int turn) {
    const MmaCorner corner = corner_of<T>(plan_, tile);
    const unsigned row = threadIdx.x / 4, chunk = threadIdx.x % 4;
    a_ = plan_.a + strip() * (corner.row / SLICE_BLOCK) + row * 128 + ((chunk ^ row % 8) << 4);
    b_ = plan_.b + strip() * (corner.col / SLICE_BLOCK) + to_;
    const int at = int(threadIdx.x) * 4;
    if (at < T::BM + T::BN)
      copy(shared_ + T::EXPONENTS + turn * T::EXPONENT_BYTES + at * 4,
           at < T::BM ? plan_.out.a_exponents + corner.row + at : plan_.out.b_exponents + corner.col + at - T::BM);
  }

  // The next 32 k, `half` of a block of 64, into a stage. There the rows of B are 128 bytes as in memory, those of A
  // half as long and in a swizzle of their own.
  __device__ __forceinline__ void fill(uint32_t stage, int half) {
    const uint32_t to = shared_ + stage + to_;
    const char* const a = half == 0 ? a_ : a_ + (threadIdx.x / 4 % 8 < 4 ? 64 : -64);  // the swizzle of memory
#pragma unroll
    for (int slice = 0; slice < 2; ++slice) {
#pragma unroll
      for (int i = 0; i < T::BM / SLICE_BLOCK; ++i)
        copy(to + slice * T::A_SLICE + i * 4096, a + strip() * i + slice * SLICE_BYTES);
#pragma unroll
      for (int i = 0; i < T::BN / SLICE_BLOCK; ++i)
        copy(to + 2 * T::A_SLICE + slice * T::B_SLICE + i * 4096, b_ + strip() * i + slice * SLICE_BYTES + half * 4096);
    }
    ptx::commit_copies();
    if (half == 1) a_ += BLOCK_BYTES<Fp16Slices>, b_ += BLOCK_BYTES<Fp16Slices>;
  }

 private:
  __device__ __forceinline__ std::size_t strip() const {  // bytes of 64 lines
    return unsigned(plan_.k_blocks) * BLOCK_BYTES<Fp16Slices>;
  }
  static __device__ __forceinline__ void copy(uint32_t to, const void* from) {
    ptx::copy_async16(to, static_cast<const float*>(from));
  }
  const MmaPlan& plan_;
  const uint32_t shared_;
  unsigned from_, to_;  // this thread's place in 64 rows of A, in memory and in a stage
  const char *a_ = nullptr, *b_ = nullptr;
};

}  // namespace fl
