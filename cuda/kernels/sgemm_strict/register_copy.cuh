// The way of an operand's tile into shared memory by registers, for devices without asynchronous copies: fetch() starts
// the loads of a tile, and store() leaves it in shared memory. The tiles, the ways of the threads through them and
// what is missing are those of TileCopy.
#pragma once

#include "cuda/kernels/sgemm_strict/tile_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_epilogue.cuh"

namespace fl {

// MANY_STEPS: what exists of a step is looked at where that has changed, after the first one at the end of k alone, and
// what comes by 16 bytes comes in whole fours (operand()). So strict_128x128r takes 0.87 of the time. Tiles in slices
// lose by it.
template <int LINES, int LEN, int THREADS, bool MANY_STEPS = false>
class RegisterCopy {
  // What neighbouring threads cover, in floats; by 16-byte copies so many that the lines are whole rounds.
  static constexpr int UNIT = LEN % 32 == 0 ? 32 : 16, UNIT16 = LINES % (THREADS * 4 / UNIT) == 0 ? UNIT : 2 * UNIT;
  static_assert(LEN % UNIT == 0);

 public:
  static constexpr int LD = padded_row(LEN), BYTES = padded_bytes(LINES, LEN);
  int lines = LINES, length = LEN;  // how many rows and columns of the tile exist

  __device__ __forceinline__ RegisterCopy(const Operand& x, const float* start, const float* outside, int thread)
      : path_(x.path), outside_(__ldg(outside)) {
    const bool transposed = path_ == CopyPath::transposed, by16 = path_ == CopyPath::by16;
    const int across = transposed ? 8 : by16 ? UNIT16 / 4 : UNIT;
    const int inner = thread % across * (by16 ? 4 : 1), outer = thread / across;
    line_ = transposed ? inner : outer, col_ = transposed ? outer : inner;
    next_line_ = transposed ? 1 : x.ld, next_column_ = transposed ? x.ld : 1, next_outer_ = THREADS / across * x.ld;
    from_ = start + line_ * next_line_ + col_ * next_column_;
  }

  __device__ __forceinline__ void next_lines(int tiles = 1) { from_ += tiles * LINES * next_line_; }
  __device__ __forceinline__ void next_columns(int tiles = 1) { from_ += tiles * LEN * next_column_; }

  // The path is asked for each time, or known at compile time: of few steps code for each path comes too late.
  __device__ __forceinline__ void fetch() {
    by_path(path_, [&]<CopyPath PATH> { fetch<PATH>(); });
  }
  __device__ __forceinline__ void store(uint32_t tile) {
    by_path(path_, [&]<CopyPath PATH> { store<PATH>(tile); });
  }
  template <CopyPath PATH>
  __device__ __forceinline__ void fetch() {
    if constexpr (MANY_STEPS) {
      if (lines != seen_.lines || length != seen_.length) look<PATH>();
      if (seen_.all)
        return each<PATH>([&]<int VEC>(float* values, const float* from, int, int) { load<VEC>(values, from); });
      each<PATH>([&]<int VEC>(float* values, const float* from, int, int) {
        if (seen_.exist >> int(values - values_) / VEC & 1) load<VEC>(values, from);
      });
    } else {
      const bool whole = lines >= LINES && length >= LEN;
      each<PATH>([&]<int VEC>(float* values, const float* from, int line, int col) {
        const int exist = whole ? VEC : existing<PATH>(line, col);
        if (VEC == 4 && exist >= VEC) return load<VEC>(values, from);
#pragma unroll
        for (int i = 0; i < VEC; ++i) values[i] = i < exist ? __ldg(from + i) : outside_;
      });
    }
  }
  template <CopyPath PATH>
  __device__ __forceinline__ void store(uint32_t tile) {
    const uint32_t to = tile + (line_ * LD + col_) * 4;
    each<PATH>([&]<int VEC>(float* values, const float*, int line, int col) {
      const uint32_t place = to + (line * LD + col) * 4;
      if constexpr (VEC == 4) ptx::store4(place, {values[0], values[1], values[2], values[3]});
      else ptx::store1(place, *values);
    });
  }

 private:
  CopyPath path_;
  int line_, col_;
  int64_t next_line_, next_column_, next_outer_;
  const float* from_;
  float outside_, values_[LINES * LEN / THREADS];
  struct Seen {
    int lines = -1, length = -1;
    unsigned exist = 0;  // bits of what the thread moves at a time
    bool all = true;
  };
  struct Nothing {};
  std::conditional_t<MANY_STEPS, Seen, Nothing> seen_;
  static_assert(!MANY_STEPS || LINES * LEN / THREADS <= 32);

  template <CopyPath PATH>
  __device__ __forceinline__ int existing(int line, int col) const {
    const int down = lines - line_ - line, across = length - col_ - col;
    return PATH == CopyPath::transposed ? (across > 0 ? down : 0) : down > 0 ? across : 0;
  }
  template <CopyPath PATH>
  __device__ __forceinline__ void look() {
    seen_ = {lines, length};
    each<PATH>([&]<int VEC>(float* values, const float*, int line, int col) {
      const bool exists = existing<PATH>(line, col) >= VEC;
      seen_.exist |= unsigned{exists} << int(values - values_) / VEC;
      seen_.all &= exists;
#pragma unroll
      for (int i = 0; i < VEC; ++i) values[i] = outside_;
    });
  }
  template <int VEC>
  __device__ __forceinline__ void load(float* values, const float* from) const {
    if constexpr (VEC == 4) unpack(values, __ldg(reinterpret_cast<const float4*>(from)));
    else *values = __ldg(from);
  }

  // use(the values, where they come from, row, column) for all that the thread moves at a time. The outer loop follows
  // ld, as in TileCopy: addresses worked out one by one took more registers than there are.
  template <CopyPath PATH, class Use>
  __device__ __forceinline__ void each(const Use& use) {
    constexpr bool TRANSPOSED = PATH == CopyPath::transposed;
    constexpr int VEC = PATH == CopyPath::by16 ? 4 : 1, ACROSS = TRANSPOSED ? 8 : VEC == 4 ? UNIT16 / 4 : UNIT;
    constexpr int OUTER = TRANSPOSED ? LEN : LINES, INNER = TRANSPOSED ? LINES : LEN;
    constexpr int OUTER_STEP = THREADS / ACROSS, INNER_STEP = ACROSS * VEC;
    static_assert(OUTER % OUTER_STEP == 0 && INNER % INNER_STEP == 0, "a tile is whole rounds of copies");
    const float* from = from_;
    float* values = values_;
#pragma unroll
    for (int outer = 0; outer < OUTER; outer += OUTER_STEP, from += next_outer_) {
#pragma unroll
      for (int inner = 0; inner < INNER; inner += INNER_STEP, values += VEC)
        use.template operator()<VEC>(values, from + inner, TRANSPOSED ? inner : outer, TRANSPOSED ? outer : inner);
      // One address follows from the one before, not each from the first. Of few steps the products wait for that.
      if constexpr (MANY_STEPS) asm("" : "+l"(from));
    }
  }
};

}  // namespace fl
