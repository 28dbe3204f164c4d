// The sizes of a kernel of simt_ring.cuh, its shared memory, and who works on what when: no work is done here.
#pragma once

#include "cuda/kernels/sgemm_strict/simt_copy.cuh"

namespace fl {

// S names the sizes: BM BN BK TM TN WM WN KG SLOTS SPLIT, in how many TEAMS the copying warps fill slots, whether k may
// be CUT over the grid, whether it SHARES tiles out, and whether SQUARES get a kernel of their own (WHOLE) and
// one more with WIDE_SLOTS (WIDE), if there are any.
// C16: rows of C are aligned for 16-byte stores. The code for others is as long as all the rest, and beside the main
// loop of a persistent kernel it cost up to 3 %; there it is a kernel of its own.
// SHARED: tiles are shared out (simt_ring_share.cuh). Another kernel as well: whatever stands beside the main loop
// changes the compiler's choice of registers in it, here by up to 2 % of the time.
// WHOLE: all tiles and steps are whole, A lies with k contiguous, B and C with n in aligned rows, and there is one
// batch. B arrives in boxes then, by a tensor map. Half as long a kernel: see TileCopy.
// WIDE: WHOLE in tiles of half the height and twice the width, with the same bits. Half as much of A is there to be
// turned, by copies of 4 bytes, and what the copying warps issue is lost for the others.
template <class S, bool ALIGNED = true, bool SHARED_OUT = false, bool ALL_WHOLE = false, bool HALF_AS_HIGH = false>
struct RingTile : S {
  static constexpr bool C16 = ALIGNED, SHARED = SHARED_OUT, WHOLE = ALL_WHOLE, WIDE = HALF_AS_HIGH;
  using S::BK, S::TM, S::TN, S::WM, S::WN, S::KG, S::SPLIT, S::TEAMS, S::CUT, S::SHARES, S::SQUARES;
  static constexpr int BM = WIDE ? S::BM / 2 : S::BM, BN = WIDE ? 2 * S::BN : S::BN;
  static constexpr int SLOTS = WIDE ? S::WIDE_SLOTS : S::SLOTS;
  static constexpr int LANE_ROWS = WIDE ? 4 : 8, LANE_COLS = 32 / LANE_ROWS;  // of a warp

  static constexpr int COPIERS = 128, TEAM = COPIERS / TEAMS, WARP_STAGE = 640, FULL_REGISTERS = 224,
                       COPY_REGISTERS = 56;
  static constexpr int group_threads() { return 32 * WM * WN; }
  static constexpr int math_threads() { return group_threads() * KG; }
  // The groups start one after the other, as their first tiles arrive. Of four, the first and the last share the issue
  // slots of one half of the multiprocessor and the other two those of the other half: both halves end together.
  static __device__ __forceinline__ int group_of(int t) {
    const int group = t / group_threads();
    return KG == 4 ? group ^ group / 2 : group;
  }
  static constexpr int threads() { return math_threads() + COPIERS; }
  static constexpr int thread_quads() { return TM * TN / 4; }
  static constexpr int quads() { return BM * BN / 4; }
  static constexpr int a_bytes() { return BK * (BM + 4) * 4; }
  static constexpr int b_pitch() { return WHOLE ? BN : BN + 4; }  // boxes have no padding
  static constexpr int slot_bytes() { return a_bytes() + BK * b_pitch() * 4; }
  static constexpr int parts_bytes() { return KG > 1 ? KG * BM * BN * 4 : 0; }  // in the place of the ring
  static constexpr int inbox() { return SLOTS * slot_bytes() > parts_bytes() ? SLOTS * slot_bytes() : parts_bytes(); }
  static constexpr int barriers() { return inbox() + (SPLIT > 1 ? BM * BN * 4 : 0); }
  static constexpr bool persistent() { return KG == 1 && SPLIT == 1; }
  // Where the warps stage unaligned results: while a ring is in use beside it, else in its place.
  static constexpr int stages() { return persistent() ? barriers() + SLOTS * 16 : parts_bytes(); }
  static constexpr int shared_bytes() { return persistent() ? stages() + 8 * WARP_STAGE : barriers() + SLOTS * 16; }
  // A barrier's parity tells this round of the ring from the last one, not from the one before that. So whoever waits
  // for a slot must know by what it did before that the last round has begun: a team because it filled the slot itself
  // then, a group because it read the slot then, or has since read one that the same team filled later.
  static constexpr bool rounds_follow() { return SLOTS % TEAMS == 0 && (KG % TEAMS == 0 || SLOTS % KG == 0); }
  static constexpr bool valid() {
    return BM == WM * LANE_ROWS * TM && BN == WN * LANE_COLS * TN && TM % 4 == 0 && TN % 4 == 0 && BK % 16 == 0 &&
           SLOTS >= KG && SLOTS >= TEAMS && rounds_follow() && !(TEAMS > 1 && persistent()) && math_threads() == 256 &&
           !(CUT && SPLIT > 1) && !(SHARES && !persistent()) && shared_bytes() <= 232448 &&
           (persistent() || parts_bytes() + 8 * WARP_STAGE <= SLOTS * slot_bytes());
  }
};

// How the tiles go to the blocks of a persistent kernel (simt_ring_share.cuh).
struct Sharing {
  unsigned tiles, waves;  // that go to them whole, block by block
  unsigned steps;         // along k of the tiles behind these, which are shared evenly; 0 if there are none
  float4* sums;           // of parts of tiles, one for each block
  unsigned* saved;        // for each warp of each block, whether they are there
};

struct RingPlan {
  Operand a, b;
  unsigned tile_rows, tile_cols, tiles;
  int steps, tail;  // BK of k each, the last of them `tail`
  bool c_by16;
  float one;             // 1.0f, as a number that the compiler does not know
  unsigned splits;       // ranges of k, each a part of the grid; 1 unless CUT
  int64_t split_stride;  // from the sums of one to those of the next
  Sharing sharing;
};

__device__ __forceinline__ Tile band_order(const RingPlan& plan, unsigned tile) {
  const unsigned per_batch = plan.tile_rows * plan.tile_cols;
  const auto corner = banded_tile(tile % per_batch, plan.tile_rows, plan.tile_cols, 8u);
  return {tile / per_batch, corner.row, corner.col};
}

template <class T>
struct Ring {
  uint32_t shared;
  int slot;
  uint32_t phase;
  __device__ __forceinline__ uint32_t tiles() const { return shared + slot * T::slot_bytes(); }
  __device__ __forceinline__ uint32_t full() const { return shared + T::barriers() + slot * 16; }
  __device__ __forceinline__ uint32_t empty() const { return full() + 8; }
  template <int BY>
  __device__ __forceinline__ void advance() {
    slot += BY;
    if (slot >= T::SLOTS) slot -= T::SLOTS, phase ^= 1;
  }
};

// The steps along k of a block: its part of the cluster's work, or of the grid's.
struct Steps {
  int first, count;
  template <class T>
  static __device__ __forceinline__ Steps of(const RingPlan& plan, int rank, unsigned block) {
    if constexpr (T::SPLIT > 1) return part(plan.steps, rank, T::SPLIT);
    else if constexpr (T::CUT) return part(plan.steps, block % plan.splits, plan.splits);
    else return {0, plan.steps};
  }

 private:
  static __device__ __forceinline__ Steps part(int all, int number, int parts) {
    const int each = (all + parts - 1) / parts, first = min(each * number, all);
    return {first, min(each, all - first)};
  }
};

// The tile that a number of the grid stands for.
template <class T>
__device__ __forceinline__ Tile ring_tile(const RingPlan& plan, unsigned block) {
  return band_order(plan, T::CUT ? block / plan.splits : block);
}

}  // namespace fl
