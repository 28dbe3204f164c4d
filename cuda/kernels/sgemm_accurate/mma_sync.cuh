// The product of two operands that the split pass has cut into fp16 terms, with instructions that every GPU from
// compute capability 8.0 on has: cp.async, ldmatrix and mma.sync.
//
// The terms lie in memory as the tensor cores read them, so stages are filled by plain copies, and read without bank
// conflicts. Persistent blocks: the copies for a tile begin while the one before it is multiplied and stored.
//
// Three accumulators: the product of the high terms is promoted to a float32 sum every 64 k, and the other two products
// have one of their own, because the tensor cores truncate and what is small has to be summed first. It becomes the
// start of the high terms' next 64 k. So a fragment is read from shared memory once for all three products, 128 bytes
// per instruction; one accumulator for all in the order of the wgmma kernel would read the high terms twice, 192 bytes,
// and shared memory gives 128 a cycle. The price: 192 of 255 registers hold sums, at 64 x 32.
#pragma once

#include "core/device_spec.h"
#include "cuda/kernels/common/ptx_mma.cuh"
#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/sgemm_accurate/epilogue.cuh"
#include "cuda/kernels/sgemm_accurate/range_check.cuh"

namespace fl {

// MT fragments of 16 rows and four of 8 columns for each of WARP_ROWS x 4 warps. A stage is 32 k deep: three of them
// take 96 KiB, and most GPUs lend a block no more than 99. Behind the stages lie the exponents of the lines of two
// tiles, and the status.
template <int MT_, int WARP_ROWS_>
struct MmaTile {
  static constexpr int MT = MT_, NT = 4, WARP_ROWS = WARP_ROWS_, WARP_COLS = 4, BK = 32;
  static constexpr int STAGES = 3, AHEAD = (STAGES - 1) / 2;  // how many blocks of 64 k are on their way
  static constexpr int BM = 16 * MT * WARP_ROWS, BN = 8 * NT * WARP_COLS, THREADS = 32 * WARP_ROWS * WARP_COLS;
  static constexpr int A_TERM_BYTES = BM * BK * 2, B_TERM_BYTES = BN * BK * 2,
                       STAGE_BYTES = 2 * (A_TERM_BYTES + B_TERM_BYTES);
  static constexpr int EXPONENTS = STAGES * STAGE_BYTES, EXPONENT_BYTES = (BM + BN) * 4;
  static constexpr int STATUS = EXPONENTS + 2 * EXPONENT_BYTES, SHARED_BYTES = STATUS + int(sizeof(RangeShared));
  static_assert(THREADS == 256, "a thread copies 16 bytes of every 64 lines by 32 k");
  static_assert(BM % TERM_BLOCK == 0 && BN % TERM_BLOCK == 0, "a tile is whole panels of 64 lines");
  static_assert(STAGES % 2 == 1, "one stage is being multiplied, the others are whole blocks of 64 k");
  static_assert(AHEAD * TERM_BLOCK <= TERMS_SMALLEST_K, "the copies that are ahead would leave the first tile");
  static_assert(SHARED_BYTES <= capability(90).shared_per_block, "the stages do not fit the shared memory of a block");
};

struct MmaPlan {
  const char *a, *b;  // terms
  int k_blocks, tile_rows, tile_cols;
  bool by16;  // C takes 16-byte accesses
  RangeCheck check;
  AccurateEpilogue out;
};

struct MmaTileOrigin {
  int row, col;  // of C
};
template <class T>
__device__ __forceinline__ MmaTileOrigin rasterize(const MmaPlan& plan, int tile) {
  const auto corner = banded_tile(tile, plan.tile_rows, plan.tile_cols, 8);
  return {corner.row * T::BM, corner.col * T::BN};
}

// Copies what lies next in the terms. Nothing here is conditional, so that the copies may be issued between products;
// a block without another tile copies its last one again, which nobody reads.
template <class T>
class MmaProducer {
 public:
  __device__ __forceinline__ MmaProducer(const MmaPlan& plan, uint32_t shared) : plan_(plan), shared_(shared) {
    const unsigned row = threadIdx.x / 4, chunk = threadIdx.x % 4;
    to_ = row * 64 + ((chunk ^ row / 2 % 4) << 4);
  }

  // The exponents come with the first stage: the registers that the sums leave do not hold as many loads as it takes to
  // hide their latency when they are wanted.
  __device__ __forceinline__ void begin_tile(int tile, int buffer) {
    const MmaTileOrigin corner = rasterize<T>(plan_, tile);
    const unsigned row = threadIdx.x / 4, chunk = threadIdx.x % 4;
    a_ = plan_.a + panel_bytes() * (corner.row / TERM_BLOCK) + row * 128 + ((chunk ^ row % 8) << 4);
    b_ = plan_.b + panel_bytes() * (corner.col / TERM_BLOCK) + to_;
    const int at = int(threadIdx.x) * 4;
    if (at < T::BM + T::BN)
      copy(shared_ + T::EXPONENTS + buffer * T::EXPONENT_BYTES + at * 4,
           at < T::BM ? plan_.out.a_exponents + corner.row + at : plan_.out.b_exponents + corner.col + at - T::BM);
  }

  // The next 32 k, `half` of a block of 64, into a stage. There the rows of B are 128 bytes as in memory, those of A
  // half as long and in a swizzle of their own.
  __device__ __forceinline__ void fill(uint32_t stage, int half) {
    const uint32_t to = shared_ + stage + to_;
    const char* const a = half == 0 ? a_ : a_ + (threadIdx.x / 4 % 8 < 4 ? 64 : -64);  // the swizzle of memory
#pragma unroll
    for (int term = 0; term < 2; ++term) {
#pragma unroll
      for (int i = 0; i < T::BM / TERM_BLOCK; ++i)
        copy(to + term * T::A_TERM_BYTES + i * 4096, a + panel_bytes() * i + term * TERM_BYTES);
#pragma unroll
      for (int i = 0; i < T::BN / TERM_BLOCK; ++i)
        copy(to + 2 * T::A_TERM_BYTES + term * T::B_TERM_BYTES + i * 4096,
             b_ + panel_bytes() * i + term * TERM_BYTES + half * 4096);
    }
    ptx::commit_copies();
    if (half == 1) a_ += BLOCK_BYTES<Fp16Terms>, b_ += BLOCK_BYTES<Fp16Terms>;
  }

 private:
  __device__ __forceinline__ std::size_t panel_bytes() const {  // of 64 lines
    return unsigned(plan_.k_blocks) * BLOCK_BYTES<Fp16Terms>;
  }
  static __device__ __forceinline__ void copy(uint32_t to, const void* from) {
    ptx::copy_async16(to, static_cast<const float*>(from));
  }
  const MmaPlan& plan_;
  const uint32_t shared_;
  unsigned from_, to_;  // this thread's place in 64 rows of A, in memory and in a stage
  const char *a_ = nullptr, *b_ = nullptr;
};

template <class T>
using MmaSums = float[T::MT][T::NT][4];

template <class T>
__device__ __forceinline__ void add(MmaSums<T>& to, const MmaSums<T>& x) {
#pragma unroll
  for (int i = 0; i < T::MT; ++i)
#pragma unroll
    for (int j = 0; j < T::NT; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) to[i][j][r] += x[i][j][r];
}

// One warp's 16 k of a stage. FIRST: `small` begins anew.
template <class T, bool FIRST>
__device__ __forceinline__ void multiply_16(MmaSums<T>& large, MmaSums<T>& small, uint32_t a_at, uint32_t b_at) {
  uint32_t b[2][T::NT / 2][4];  // terms, pairs of fragments
#pragma unroll
  for (int term = 0; term < 2; ++term)
#pragma unroll
    for (int pair = 0; pair < T::NT / 2; ++pair)
      ptx::load_matrices_transposed(b[term][pair], (b_at ^ pair * 32) + term * T::B_TERM_BYTES);
#pragma unroll
  for (int i = 0; i < T::MT; ++i) {
    uint32_t high[4], low[4];
    ptx::load_matrices(high, a_at + i * 16 * 64);
    ptx::load_matrices(low, a_at + i * 16 * 64 + T::A_TERM_BYTES);
    auto each = [&](MmaSums<T>& sums, const uint32_t(&a)[4], int term, bool begin) __attribute__((always_inline)) {
#pragma unroll
      for (int j = 0; j < T::NT; ++j) {
        const uint32_t* const x = &b[term][j / 2][j % 2 * 2];
        if (begin) ptx::mma(sums[i][j], a, x[0], x[1], {0.0f, 0.0f, 0.0f, 0.0f});
        else ptx::mma(sums[i][j], a, x[0], x[1], sums[i][j]);
      }
    };
    each(small, low, 0, FIRST);
    each(large, high, 0, false);
    each(small, high, 1, false);
  }
}

// Rows in eights, columns in fours (SplitThreadMap puts neighbours into one lane).
template <class T>
__device__ __forceinline__ void store_sums(const MmaPlan& plan, const MmaSums<T>& sums, const MmaTileOrigin& corner,
                                           const int* exponents, bool wide) {
  const AccurateEpilogue& out = plan.out;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first_row = warp / T::WARP_COLS * 16 * T::MT + lane / 4,
            first_col = warp % T::WARP_COLS * 8 * T::NT + lane % 4 * 4;
#pragma unroll
  for (int pair = 0; pair < T::NT / 2; ++pair) {
    const int col = corner.col + first_col + pair * 16, exist = out.n - col;
    const int4 back = *reinterpret_cast<const int4*>(exponents + T::BM + first_col + pair * 16);
#pragma unroll
    for (int i = 0; i < T::MT * 2; ++i) {
      const int row = corner.row + first_row + i * 8, down = exponents[first_row + i * 8];
      auto scaled = [&](float sum, int e) __attribute__((always_inline)) {
        return (wide ? scale_wide(sum, -down - e) : sum * power_of_two(-down - e)) * out.alpha;
      };
      const float(&left)[4] = sums[i / 2][2 * pair], (&right)[4] = sums[i / 2][2 * pair + 1];
      const float x[4] = {scaled(left[i % 2 * 2], back.x), scaled(left[i % 2 * 2 + 1], back.y),
                          scaled(right[i % 2 * 2], back.z), scaled(right[i % 2 * 2 + 1], back.w)};
      if (row >= out.m) continue;
      float* const c = out.c + row * out.ldc + col;
      if (plan.by16 && exist >= 4) {
        float4 y{x[0], x[1], x[2], x[3]};
        if (out.beta != 0.0f) {
          const float4 old = *reinterpret_cast<const float4*>(c);
          y = {fmaf(out.beta, old.x, y.x), fmaf(out.beta, old.y, y.y), fmaf(out.beta, old.z, y.z),
               fmaf(out.beta, old.w, y.w)};
        }
        *reinterpret_cast<float4*>(c) = y;
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (j < exist) c[j] = out.beta != 0.0f ? fmaf(out.beta, c[j], x[j]) : x[j];
      }
    }
  }
}

// 64 k of a tile for one warp. `large` begins with what `small` was 64 k before.
template <class T>
struct MmaSteps {
  MmaProducer<T>& producer;
  uint32_t shared, a_at, b_at, stage = 0;

  __device__ __forceinline__ MmaSteps(MmaProducer<T>& producer, uint32_t shared) : producer(producer), shared(shared) {
    const unsigned lane = threadIdx.x % 32, row = threadIdx.x / 32 / T::WARP_COLS,
                   col = threadIdx.x / 32 % T::WARP_COLS;
    a_at = (row * 16 * T::MT + lane % 16) * 64 + ((lane / 16 ^ lane / 2 % 4) << 4);
    b_at = 2 * T::A_TERM_BYTES + col / 2 * 4096 + lane % 16 * 128 + ((col % 2 * 4 + lane / 16 ^ lane % 8) << 4);
  }

  __device__ __forceinline__ void multiply_64(MmaSums<T>& sums, MmaSums<T>& large, MmaSums<T>& small) {
    constexpr uint32_t LAST = (T::STAGES - 1) * T::STAGE_BYTES;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      ptx::wait_copies<T::STAGES - 2>();
      __syncthreads();
      const uint32_t a = shared + stage + a_at, b = shared + stage + b_at;
      if (half == 0) multiply_16<T, true>(large, small, a, b);
      else multiply_16<T, false>(large, small, a, b);
      producer.fill(stage == 0 ? LAST : stage - T::STAGE_BYTES, half);  // before the reads above it would delay them
      multiply_16<T, false>(large, small, a ^ 32, b + 16 * 128);
      stage = stage == LAST ? 0 : stage + T::STAGE_BYTES;
    }
    add<T>(sums, large);
  }
};

template <class T>
__device__ __forceinline__ void multiply_tiles(const MmaPlan& plan, MmaProducer<T>& producer, const char* memory) {
  const auto& status = reinterpret_cast<const RangeShared*>(memory + T::STATUS)->status;
  const int tiles = plan.tile_rows * plan.tile_cols;
  MmaSteps<T> steps(producer, ptx::shared_address(memory));
  MmaSums<T> sums, one, other;
  for (int tile = int(blockIdx.x), buffer = 0; tile < tiles; tile += int(gridDim.x), buffer ^= 1) {
#pragma unroll
    for (int i = 0; i < T::MT * T::NT * 4; ++i)
      sums[i / 4 / T::NT][i / 4 % T::NT][i % 4] = one[i / 4 / T::NT][i / 4 % T::NT][i % 4] = 0.0f;
    auto look_ahead = [&](int left) __attribute__((always_inline)) {
      const int next = tile + int(gridDim.x);
      if (left == T::AHEAD) producer.begin_tile(next < tiles ? next : tile, buffer ^ 1);
    };
    for (int left = plan.k_blocks;; left -= 2) {
      look_ahead(left);
      steps.multiply_64(sums, one, other);
      if (left == 1) {
        add<T>(sums, other);
        break;
      }
      look_ahead(left - 1);
      steps.multiply_64(sums, other, one);
      if (left == 2) {
        add<T>(sums, one);
        break;
      }
    }
    store_sums<T>(plan, sums, rasterize<T>(plan, tile),
                  reinterpret_cast<const int*>(memory + T::EXPONENTS + buffer * T::EXPONENT_BYTES),
                  status & STATUS_WIDE);
  }
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1) mma_sync_kernel(const __grid_constant__ MmaPlan plan) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) char memory[];  // nothing else is shared: what lies before it may not be aligned
  RangeShared& range = *reinterpret_cast<RangeShared*>(memory + T::STATUS);
  if (threadIdx.x == 0) range = {};
  pdl_launch_next();
  __syncthreads();
  pdl_wait();
  if (!terms_wanted(plan.check)) return;

  // The first copies take as long as the range check.
  MmaProducer<T> producer(plan, ptx::shared_address(memory));
  producer.begin_tile(int(blockIdx.x), 0);
#pragma unroll
  for (int i = 0; i < T::STAGES - 1; ++i) producer.fill(i * T::STAGE_BYTES, i % 2);
  reduce_range_words<0, T::THREADS>(plan.check, range);
  __syncthreads();
  const unsigned status = status_of(plan.check, range);
  if (threadIdx.x == 0) {
    range.status = status;  // for the stores: no register is free to keep it
    if (blockIdx.x == 0) *plan.check.status = status;
  }
  if (!(status & STATUS_REJECTED)) multiply_tiles<T>(plan, producer, memory);
  ptx::wait_copies<0>();
#else
  not_for_this_target();
#endif
}

}  // namespace fl
