// Stages that are filled by boxes: what steps 12 to 15 of the ladder have in common.
//
// The tensor memory accelerator (TMA) copies a box of B, BK rows of BN floats, that one thread asks for; a tensor map,
// made on the host, says where B lies. A row-major A has to be transposed, which no box can do: it still comes by
// copies of 4 bytes. Whoever waits for a stage waits at its barrier `full`, which counts the arrivals of the copying
// threads, each after its own copies have arrived, and the bytes of the box.
#pragma once

#include <algorithm>

#include "cuda/kernels/common/ptx_barriers.cuh"
#include "cuda/kernels/common/tensor_map.cuh"
#include "cuda/kernels/ladder/async/warp_tiles.cuh"

namespace fl {

void sgemm_warp_tiles(const SgemmArgs& p, const Context& ctx);

namespace {

using BoxTiles = WarpTiles<8, 16>;

template <int STAGES_>
struct BoxStages {
  static constexpr int STAGES = STAGES_, BK = BoxTiles::BK, A_ROW = padded_row(BoxTiles::BM);
  static constexpr int B_BYTES = BK * BoxTiles::BN * 4, STAGE_BYTES = B_BYTES + padded_bytes(BK, BoxTiles::BM);
  static constexpr int SHARED_BYTES = STAGES * (STAGE_BYTES + 16);
  static_assert(STAGE_BYTES % 128 == 0, "a box begins at a multiple of 128 bytes");

  uint32_t shared;
  int stage = 0;
  uint32_t parity = 0;  // of the round: a barrier's phases are told apart by it

  // The first thing in a kernel.
  __device__ __forceinline__ BoxStages(const unsigned char* memory, int copying_threads, int multiplying_threads)
      : shared(ptx::shared_address(memory)) {
    if (threadIdx.x == 0)
      for (int s = 0; s < STAGES; ++s) {
        ptx::barrier_init(shared + STAGES * STAGE_BYTES + s * 16, copying_threads);
        ptx::barrier_init(shared + STAGES * STAGE_BYTES + s * 16 + 8, multiplying_threads);
      }
    ptx::barrier_init_fence();
    __syncthreads();
  }

  __device__ __forceinline__ uint32_t b() const { return shared + stage * STAGE_BYTES; }
  __device__ __forceinline__ uint32_t a() const { return b() + B_BYTES; }
  __device__ __forceinline__ uint32_t full() const { return shared + STAGES * STAGE_BYTES + stage * 16; }
  __device__ __forceinline__ uint32_t empty() const { return full() + 8; }
  __device__ __forceinline__ void next() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }

  // By the copying threads: a step of k, from row `k` and column `col` of B.
  template <class CopyA>
  __device__ __forceinline__ void fill(CopyA& copy_a, const CUtensorMap* b_map, int col, int k, bool first_thread) {
    if (first_thread) {
      ptx::barrier_expect_more(full(), B_BYTES);
      ptx::load_box(b(), b_map, col, k, full());
    }
    copy_a(a());
    copy_a.next_lines();
    ptx::barrier_arrive_after_copies(full());
  }
};

template <int THREADS>
using CopyTransposedA = TileCopy<BoxTiles::BK, BoxTiles::BM, THREADS, Tail::of_lines, 1, true>;

// Whether these kernels take the call, with the map of B if so. They have no code for edges: calls that are not whole
// tiles of row-major operands are step 11's.
inline bool comes_in_boxes(const SgemmArgs& p, CUtensorMap& b_map) {
  constexpr int64_t most = 1 << 30;  // the accelerator counts in 32 bits
  return p.batch == 1 && p.m % BoxTiles::BM == 0 && p.n % BoxTiles::BN == 0 && p.k % BoxTiles::BK == 0 && p.k > 0 &&
         std::max({p.m, p.n, p.k}) < most && p.a.cs == 1 && p.b.cs == 1 && p.b.rs >= p.n && aligned16(p.c) &&
         tensor_map(b_map, p.b.data, p.k, p.n, p.b.rs, BoxTiles::BK, BoxTiles::BN, CU_TENSOR_MAP_SWIZZLE_NONE);
}

}  // namespace
}  // namespace fl
