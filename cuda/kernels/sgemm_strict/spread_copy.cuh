// The way of an operand's tile into shared memory in single asynchronous copies, which a warp that multiplies issues
// one by one between its FMAs: a run of copies all at once keeps its reads of shared memory waiting behind them. The
// tiles and the ways of the threads through them are those of TileCopy; here the way is known at compile time, and the
// address moves on by a constant.
#pragma once

#include "cuda/kernels/sgemm_strict/tile_copy.cuh"

namespace fl {

template <int LINES, int LEN, int THREADS, CopyPath PATH>
class SpreadCopy {
  static constexpr bool TRANSPOSED = PATH == CopyPath::transposed;
  static constexpr int LD = padded_row(LEN), VEC = PATH == CopyPath::by16 ? 4 : 1;
  // Floats of a line that neighbouring threads cover; by 16-byte copies so many that the lines are whole rounds.
  static constexpr bool whole(int unit) { return LEN % unit == 0 && LINES % (THREADS * VEC / unit) == 0; }
  static constexpr int UNIT = whole(32) ? 32 : whole(64) ? 64 : 16;
  // An outer round follows ld, an inner step the contiguous direction.
  static constexpr int OUTER = TRANSPOSED ? LEN : LINES, OUTER_STEP = TRANSPOSED ? THREADS / 8 : THREADS * VEC / UNIT;
  static constexpr int INNER = TRANSPOSED ? LINES : LEN, INNER_STEP = TRANSPOSED ? 8 : UNIT;
  static_assert(OUTER % OUTER_STEP == 0 && INNER % INNER_STEP == 0, "a tile is whole rounds of copies");
  static constexpr int INNERS = INNER / INNER_STEP;

 public:
  static constexpr int COPIES = OUTER / OUTER_STEP * INNERS;  // of a thread for a tile

  // `start` is the operand's first element that this block works on; `length` columns of it exist, whole fours of them
  // where copies are of 16 bytes.
  __device__ __forceinline__ SpreadCopy(const Operand& x, const float* start, int length, int thread)
      : outer_step_(OUTER_STEP * x.ld), next_tile_(TRANSPOSED ? LINES - LEN * x.ld : 0) {
    const int across = TRANSPOSED ? 8 : UNIT / VEC;
    const int inner = thread % across * VEC, outer = thread / across;
    from_ = start + inner + outer * x.ld;
    line_ = TRANSPOSED ? inner : outer;
    const int col = TRANSPOSED ? outer : inner;
    to_ = (line_ * LD + col) * 4;
    left_ = length - col;
  }

  // Copies FIRST to END - 1 of a whole tile; all of a tile, in turn, and then those of the next one.
  template <int FIRST, int END>
  __device__ __forceinline__ void copy(uint32_t tile) {
    if constexpr (FIRST < END) {
      constexpr int outer = FIRST / INNERS * OUTER_STEP, inner = FIRST % INNERS * INNER_STEP;
      one(tile, TRANSPOSED ? inner : outer, TRANSPOSED ? outer : inner, inner);
      if constexpr (FIRST % INNERS == INNERS - 1) from_ += outer_step_;
      if constexpr (TRANSPOSED && FIRST == COPIES - 1) from_ += next_tile_;
      copy<FIRST + 1, END>(tile);
    }
  }
  // The last tile, where it has fewer lines.
  __device__ __forceinline__ void copy_lines(uint32_t tile, int lines) {
#pragma unroll 1
    for (int outer = 0; outer < OUTER; outer += OUTER_STEP, from_ += outer_step_)
#pragma unroll
      for (int inner = 0; inner < INNER; inner += INNER_STEP) {
        const int line = TRANSPOSED ? inner : outer;
        if (line_ + line < lines) one(tile, line, TRANSPOSED ? outer : inner, inner);
      }
  }
  // From now on nothing is copied.
  __device__ __forceinline__ void end() { left_ = 0; }

 private:
  const float* from_;
  int64_t outer_step_, next_tile_;
  int line_, left_;
  uint32_t to_;

  // What is missing across k only feeds results that are not stored: whatever lies in its place may stay there.
  __device__ __forceinline__ void one(uint32_t tile, int line, int col, int along) const {
    if (left_ <= col) return;
    const uint32_t to = tile + to_ + (line * LD + col) * 4;
    if constexpr (VEC == 4) ptx::copy_async16(to, from_ + along);
    else ptx::copy_async4(to, from_ + along);
  }
};

}  // namespace fl
