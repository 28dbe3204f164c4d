// Large tall-skinny products with 9 to 16 columns, rows of A contiguous: as tall_skinny_rows.cuh, but half as many
// warps with twice the rows each. A value of the right operand then serves twice the FMAs, and 16 warps of that size do
// not fit.
//
// A warp owns 16 rows. Its halves take 8 columns each, and 16 lanes stand side by side along k, four k to a lane: 512
// FMAs need 24 reads of 16 bytes. With 8 warps on a multiprocessor every other instruction shows: 16384 x 16384 times
// 16 columns took 289 us in pairs of k, 280 so, and 253 once the copies of B had lost their address arithmetic.
//
// Lost there: A straight from memory into registers, each row loaded again as soon as it is multiplied (395 to 404 us,
// 356 with the lines fetched into L2 two or four steps ahead); bulk copies into each warp's ring, 256 bytes a row (375;
// 512 bytes with three slots 298): the same loop with the copies of all lanes takes 253.
#pragma once

#include "cuda/kernels/sgemm_tall_skinny/tall_skinny_lanes.cuh"

namespace fl {

// A chunk of B: fours of k, and a padding of 16 bytes that sends neighbouring lanes to different banks. COLUMN_MAJOR: a
// column after the other.
template <bool COLUMN_MAJOR>
struct QuadChunk {
  static constexpr int NR = 16, NC = 8, KC = 512;
  static constexpr int QUAD = COLUMN_MAJOR ? 16 : 4 * NR * 4 + 16;  // bytes to the next four k
  static constexpr int COLUMN = COLUMN_MAJOR ? (KC + 4) * 4 : 4, K = COLUMN_MAJOR ? 4 : NR * 4;
  static constexpr int bytes(int) { return COLUMN_MAJOR ? NR * COLUMN : KC / 4 * QUAD; }
  static_assert(bytes(KC) % 128 == 0, "what follows a chunk starts on a line of 128 bytes");

  static __device__ __forceinline__ uint32_t place(int k, int col) { return k / 4 * QUAD + k % 4 * K + col * COLUMN; }

  // x[i][c]: NC columns of the four k that lie at `from`.
  static __device__ __forceinline__ void load(float (&x)[4][NC], uint32_t from) {
    if constexpr (COLUMN_MAJOR) {
#pragma unroll
      for (int c = 0; c < NC; ++c) {
        const float4 v = ptx::load4(from + c * COLUMN);
        x[0][c] = v.x, x[1][c] = v.y, x[2][c] = v.z, x[3][c] = v.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int c = 0; c < NC; c += 4) {
          const float4 v = ptx::load4(from + i * K + c * 4);
          x[i][c] = v.x, x[i][c + 1] = v.y, x[i][c + 2] = v.z, x[i][c + 3] = v.w;
        }
    }
  }
};

template <bool COLUMN_MAJOR>
struct TallSkinnyQuads {
  static constexpr int R = 16, THREADS = 256, LANES = 16, NC = 8, LANE_K = 4;
  static constexpr int STEP = LANE_K * LANES, SLOTS = 4;
  static constexpr int SLOT_BYTES = R * STEP * 4, SUM_BYTES = 0;
  using Chunk = QuadChunk<COLUMN_MAJOR>;
  static constexpr int step_k(int) { return STEP; }
  static_assert(SLOTS - 1 <= Chunk::KC / STEP, "a chunk arrives before the step that it is multiplied with");
  static_assert(2 * Chunk::bytes(Chunk::KC) + THREADS / 32 * SLOTS * SLOT_BYTES <= MOST_SHARED_BYTES,
                "two chunks of B and the rings of all warps fit a block's shared memory");

  static __device__ __forceinline__ void multiply(float (&acc)[R * NC], uint32_t a, uint32_t b) {
    float x[4][NC];
    Chunk::load(x, b);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const float4 v = ptx::load4(a + r * STEP * 4);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int c = 0; c < NC; ++c) acc[r * NC + c] = fmaf(component(v, i), x[i][c], acc[r * NC + c]);
    }
  }
};

// Of a block with so many warps; B takes more in the order of its rows.
constexpr int quads_shared_bytes(int warps) {
  using T = TallSkinnyQuads<false>;
  return 2 * T::Chunk::bytes(T::Chunk::KC) + warps * T::SLOTS * T::SLOT_BYTES;
}

inline void tall_skinny_quads(const SgemmArgs& p, const TallSkinnyPlan& plan, const Context& ctx) {
  p.b.cs == 1 ? tall_skinny_lanes<TallSkinnyQuads<false>>(p, plan, ctx)
              : tall_skinny_lanes<TallSkinnyQuads<true>>(p, plan, ctx);
}

}  // namespace fl
