// The way of an operand's tile from global into shared memory by asynchronous copies, whatever order the operand is
// stored in and wherever it lies: the kernels behind it see one layout and exist once for all four transposes.
//
// A tile is LINES rows of LEN floats, each row followed by four floats of padding. How threads share it out:
//  - by16: rows are contiguous and aligned in memory. 16-byte copies, eight neighbouring threads to 128 bytes.
//  - by4: rows are contiguous. 4-byte copies along the rows.
//  - transposed: columns are contiguous. 4-byte copies, eight threads to the 32 bytes of a sector and four sectors to a
//    warp. A row stride that is an odd multiple of four floats sends those 32 floats to 32 different banks.
//
// Elements past the end of k are copied from constants, -0.0f for A and +0.0f for B, whose product changes no sum
// (tiles.cuh); only a 16-byte copy of A that straddles the end of k fills up with +0.0f. These copies go through the
// first-level cache: with edges filled in past it, 256 x 256 x 1024 in 48 x 48 tiles took 20.3 instead of 11.4 us.
// Presumably every block then asked the second level for one sector at the same time.
#pragma once

#include "core/layout.h"
#include "cuda/kernels/common/ptx_shared.cuh"
#include "plan/strict/tile_rules.h"

namespace fl {

enum class CopyPath : int { by16, by4, transposed };

// An operand as a kernel takes it: the contiguous direction has stride 1, the other one ld.
struct Operand {
  const float* data;
  int64_t ld, bs;
  CopyPath path;
};

// `across` is the stride of x that leads to the next row of its tiles, `along` the one within a row. What comes by 16
// bytes comes in fours of `length`, where they have to be whole.
inline Operand operand(const ConstMatrix& x, int64_t across, int64_t along, int64_t length = 0) {
  if (along != 1) return {x.data, along, x.bs, CopyPath::transposed};
  const bool fours = aligned<4>(x.data, across, x.bs) && length % 4 == 0;
  return {x.data, across, x.bs, fours ? CopyPath::by16 : CopyPath::by4};
}

// use() with a path that is known at compile time.
template <class Use>
__host__ __device__ __forceinline__ void by_path(CopyPath path, const Use& use) {
  switch (path) {
    case CopyPath::by16: return use.template operator()<CopyPath::by16>();
    case CopyPath::by4: return use.template operator()<CopyPath::by4>();
    case CopyPath::transposed: return use.template operator()<CopyPath::transposed>();
  }
}

namespace {
alignas(16) __device__ const float minus_zeros[4] = {-0.0f, -0.0f, -0.0f, -0.0f};
alignas(16) __device__ const float plus_zeros[4] = {0.0f, 0.0f, 0.0f, 0.0f};
}  // namespace

// Element (line, col) of an operand's lines, the lines of its tiles.
__device__ __forceinline__ const float* first_of(const Operand& x, int64_t batch, int64_t line, int64_t col) {
  return x.data + batch * x.bs + (x.path == CopyPath::transposed ? line + col * x.ld : line * x.ld + col);
}

// Which direction of a tile is k, the one whose missing elements have to be filled in; or none, where none are read.
enum class Tail { of_lines, of_columns, none };

// One of THREADS threads that copy tiles of one operand, from one tile of it to the next. Where a tile has an edge
// across k, EDGE_UNROLL copies are written out at a time. FULL_TRANSPOSED: all tiles are whole and arrive transposed.
// What a kernel for all ways carries with it costs time even where it is not run: a launch fetches its instructions
// anew. CACHED: all 16-byte copies go through the first-level cache. Where all multiprocessors read the same few lines
// over and over, the second level is slow: 262144 x 16 x 128 took strict_16x16w 192 us, and 65 so. UNIT16: the floats
// that neighbouring threads cover by 16-byte copies, twice as many where LINES are no multiple of 16, say.
template <int LINES, int LEN, int THREADS, Tail TAIL, int EDGE_UNROLL = 1, bool FULL_TRANSPOSED = false,
          bool CACHED = false,
          int UNIT16 = LEN % 32 == 0   ? 32
                       : LEN % 16 == 0 ? 16
                                       : 8>
class TileCopy {
 public:
  static constexpr int LD = padded_row(LEN), BYTES = padded_bytes(LINES, LEN);
  int lines = LINES, length = LEN;  // how many rows and columns of the tile exist

  // `start` is the operand's first element that this block works on; `outside` is what a missing element is.
  __device__ __forceinline__ TileCopy(const Operand& x, const float* start, const float* outside, int thread)
      : path_(FULL_TRANSPOSED ? CopyPath::transposed : x.path), outside_(outside) {
    constexpr int AT16 = UNIT16 / 4;
    line_ = path_ == CopyPath::transposed ? thread % 8 : path_ == CopyPath::by16 ? thread / AT16 : thread / UNIT;
    col_ = path_ == CopyPath::transposed ? thread / 8 : path_ == CopyPath::by16 ? thread % AT16 * 4 : thread % UNIT;
    ld_ = x.ld;
    from_ = start + (path_ == CopyPath::transposed ? line_ + col_ * x.ld : line_ * x.ld + col_);
  }

  __device__ __forceinline__ void next_lines(int tiles = 1) {
    from_ += tiles * LINES * (path_ == CopyPath::transposed ? 1 : ld_);
  }
  __device__ __forceinline__ void next_columns() { from_ += LEN * (path_ == CopyPath::transposed ? ld_ : 1); }

  __device__ __forceinline__ void operator()(uint32_t tile) const {
    const uint32_t to = tile + (line_ * LD + col_) * 4;
    if constexpr (FULL_TRANSPOSED) run<1, true, 8, THREADS / 8>(to);
    else if (path_ == CopyPath::by16) run<4, false, THREADS / (UNIT16 / 4), UNIT16>(to);
    else if (path_ == CopyPath::transposed) run<1, true, 8, THREADS / 8>(to);
    else run<1, false, THREADS / UNIT, UNIT>(to);
  }

 private:
  static constexpr int UNIT = LEN % 32 == 0 ? 32 : LEN % 16 == 0 ? 16 : 8;  // floats that neighbouring threads cover
  CopyPath path_;
  int line_, col_;
  int64_t ld_;
  const float *from_, *outside_;

  template <int VEC, bool TRANSPOSED, int LINE_STEP, int COL_STEP>
  __device__ __forceinline__ void run(uint32_t to) const {
    static_assert(LINES % LINE_STEP == 0 && LEN % COL_STEP == 0, "a tile is whole rounds of copies");
    const auto whole = [](uint32_t target, const float* source, int, int) {
      if constexpr (VEC == 4 && CACHED) ptx::copy_async16(target, source, 16);
      else if constexpr (VEC == 4) ptx::copy_async16(target, source);
      else ptx::copy_async4(target, source);
    };
    if constexpr (FULL_TRANSPOSED) return rounds<TRANSPOSED, LINE_STEP, COL_STEP, 4>(to, whole);
    int left = length - col_;
    asm volatile("" : "+r"(left));  // what follows from it is worked out per tile, not kept in registers for all ways
    auto copy = [](uint32_t target, const float* source, int exist) {
      if constexpr (VEC == 4) ptx::copy_async16(target, source, exist < 4 ? 4 * exist : 16);
      else ptx::copy_async4(target, source);
    };
    if (lines >= LINES && length >= LEN) {
      rounds<TRANSPOSED, LINE_STEP, COL_STEP, 4>(to, whole);
    } else if (TAIL == Tail::none && lines < LINES) {
      rounds<TRANSPOSED, LINE_STEP, COL_STEP, 1>(to, [&](uint32_t target, const float* source, int line, int col) {
        const int exist = line_ + line < lines ? left - col : 0;
        if (exist > 0) copy(target, source, exist);
      });
    } else if (TAIL == Tail::of_columns ? length >= LEN : lines >= LINES) {
      // What is missing across k only feeds results that are not stored: whatever lies in its place may stay there.
      rounds<TRANSPOSED, LINE_STEP, COL_STEP, EDGE_UNROLL>(
          to, [&](uint32_t target, const float* source, int line, int col) {
            const int exist = TAIL == Tail::of_columns ? (line_ + line < lines ? 4 : 0) : left - col;
            if (exist > 0) copy(target, source, exist);
          });
    } else {
      rounds<TRANSPOSED, LINE_STEP, COL_STEP, 1>(to, [&](uint32_t target, const float* source, int line, int col) {
        const int exist = line_ + line < lines ? left - col : 0;
        copy(target, exist > 0 ? source : outside_, exist > 0 ? exist : 4);
      });
    }
  }

  // The outer loop follows ld, the inner one the contiguous direction.
  template <bool TRANSPOSED, int LINE_STEP, int COL_STEP, int UNROLL, class Copy>
  __device__ __forceinline__ void rounds(uint32_t to, Copy copy) const {
    const float* source = from_;
    if constexpr (TRANSPOSED) {
#pragma unroll UNROLL
      for (int col = 0; col < LEN; col += COL_STEP, source += COL_STEP * ld_)
#pragma unroll
        for (int line = 0; line < LINES; line += LINE_STEP) copy(to + (line * LD + col) * 4, source + line, line, col);
    } else {
#pragma unroll UNROLL
      for (int line = 0; line < LINES; line += LINE_STEP, source += LINE_STEP * ld_)
#pragma unroll
        for (int col = 0; col < LEN; col += COL_STEP) copy(to + (line * LD + col) * 4, source + col, line, col);
    }
  }
};

}  // namespace fl
