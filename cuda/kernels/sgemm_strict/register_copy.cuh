// The way of an operand's tile into shared memory by registers, for devices without asynchronous copies: fetch() starts
// the loads of a tile, and operator() leaves it in shared memory. The tiles, the ways of the threads through them and
// what is missing are those of TileCopy.
#pragma once

#include "cuda/kernels/sgemm_strict/tile_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_epilogue.cuh"

namespace fl {

// MANY_STEPS: what exists of a step is looked at where that has changed, after the first one at the end of k alone. So
// strict_128x128r takes 0.87 of the time. Tiles in slices lose by it.
template <int LINES, int LEN, int THREADS, bool MANY_STEPS = false>
class RegisterCopy {
 public:
  static constexpr int LD = padded_row(LEN), BYTES = padded_bytes(LINES, LEN);
  int lines = LINES, length = LEN;  // how many rows and columns of the tile exist

  __device__ __forceinline__ RegisterCopy(const Operand& x, const float* start, const float* outside, int thread)
      : way_(x.path == CopyPath::by16                                                 ? Way::by16
             : x.path == CopyPath::by4                                                ? Way::by4
             : FOURS && x.ld % 4 == 0 && reinterpret_cast<uintptr_t>(start) % 16 == 0 ? Way::transposed16
                                                                                      : Way::transposed),
        ld_(x.ld),
        outside_(__ldg(outside)) {
    const bool transposed = x.path == CopyPath::transposed;
    const int across = way_ == Way::transposed16 ? 2 : transposed ? 8 : way_ == Way::by16 ? UNIT16 / 4 : UNIT;
    const int inner = thread % across * (way_ == Way::by16 || way_ == Way::transposed16 ? 4 : 1);
    line_ = transposed ? inner : thread / across;
    col_ = transposed ? thread / across : inner;
    from_ = start + (transposed ? line_ + col_ * ld_ : line_ * ld_ + col_);
  }

  __device__ __forceinline__ void next_lines(int tiles = 1) { from_ += tiles * LINES * (is_transposed() ? 1 : ld_); }
  __device__ __forceinline__ void next_columns(int tiles = 1) { from_ += tiles * LEN * (is_transposed() ? ld_ : 1); }

  // use(this, with a way that is known at compile time). Of few steps the code for each way comes too late.
  template <class Use>
  __device__ __forceinline__ void with_way(const Use& use) {
    switch (way_) {
      case Way::by16: return use(Known<Way::by16>{*this});
      case Way::by4: return use(Known<Way::by4>{*this});
      case Way::transposed: return use(Known<Way::transposed>{*this});
      case Way::transposed16:
        if constexpr (FOURS) return use(Known<Way::transposed16>{*this});
    }
  }

  __device__ __forceinline__ void fetch() { fetch_by<Way::any>(); }
  __device__ __forceinline__ void operator()(uint32_t tile) { store_by<Way::any>(tile); }

 private:
  // CopyPath's, and fours of a column by 16 bytes, where columns are aligned and long enough for half the threads: 2 x
  // 16 threads of a warp store the same one of their four into 32 different banks.
  enum class Way : int { by16, by4, transposed, transposed16, any };
  template <Way WAY>
  struct Known {
    RegisterCopy& copy;
    __device__ __forceinline__ void fetch() const { copy.template fetch_by<WAY>(); }
    __device__ __forceinline__ void store(uint32_t tile) const { copy.template store_by<WAY>(tile); }
    __device__ __forceinline__ void next_lines() const {
      copy.from_ += LINES * (WAY >= Way::transposed ? 1 : copy.ld_);
    }
    __device__ __forceinline__ void next_columns() const {
      copy.from_ += LEN * (WAY >= Way::transposed ? copy.ld_ : 1);
    }
  };
  template <Way WAY>
  __device__ __forceinline__ void fetch_by() {
    if constexpr (MANY_STEPS) {
      if (lines != seen_.lines || length != seen_.length) look<WAY>();
      if (!seen_.cut) return fetch_whole_ones<WAY>();
    }
    const bool whole = lines >= LINES && length >= LEN;
    each<WAY>([&]<int VEC, bool TRANSPOSED>(float* values, const float* from, int line, int col) {
      const int down = lines - line_ - line, across = length - col_ - col;  // what exists from here
      load<VEC>(values, from, whole ? VEC : TRANSPOSED ? (across > 0 ? down : 0) : down > 0 ? across : 0);
    });
  }
  template <Way WAY>
  __device__ __forceinline__ void store_by(uint32_t tile) {
    const uint32_t to = tile + (line_ * LD + col_) * 4;
    each<WAY>([&]<int VEC, bool TRANSPOSED>(float* values, const float*, int line, int col) {
      const uint32_t place = to + (line * LD + col) * 4;
      if constexpr (VEC == 4 && !TRANSPOSED) ptx::store4(place, {values[0], values[1], values[2], values[3]});
      else
#pragma unroll
        for (int i = 0; i < VEC; ++i) ptx::store1(place + i * LD * 4, values[i]);
    });
  }

  static constexpr bool FOURS = LEN % (THREADS / 2) == 0;
  // What neighbouring threads cover, in floats; by 16-byte copies so many that the lines are whole rounds.
  static constexpr int UNIT = LEN % 32 == 0 ? 32 : 16, UNIT16 = LINES % (THREADS * 4 / UNIT) == 0 ? UNIT : 2 * UNIT;
  static_assert(LEN % UNIT == 0);
  Way way_;
  int line_, col_;
  int64_t ld_;
  const float* from_;
  float outside_, values_[LINES * LEN / THREADS];
  // What was there when it was last looked: bits of what the thread moves at a time, and whether fours exist in part.
  struct Seen {
    int lines = -1, length = -1;
    unsigned exist = 0;
    bool cut = false;
  };
  struct Nothing {};
  static constexpr unsigned all_of(int moves) { return moves >= 32 ? ~0u : (1u << moves) - 1; }
  std::conditional_t<MANY_STEPS, Seen, Nothing> seen_;
  static_assert(!MANY_STEPS || LINES * LEN / THREADS <= 32);

  __device__ __forceinline__ bool is_transposed() const { return way_ >= Way::transposed; }

  template <Way WAY>
  __device__ __forceinline__ void fetch_whole_ones() {
    if (seen_.exist == all_of(LINES * LEN / THREADS / (WAY == Way::by16 || WAY == Way::transposed16 ? 4 : 1)))
      return each<WAY>([&]<int VEC, bool>(float* values, const float* from, int, int) {
        if constexpr (VEC == 4) unpack(values, __ldg(reinterpret_cast<const float4*>(from)));
        else *values = __ldg(from);
      });
    each<WAY>([&]<int VEC, bool>(float* values, const float* from, int, int) {
      if (!(seen_.exist >> int(values - values_) / VEC & 1)) return;
      if constexpr (VEC == 4) unpack(values, __ldg(reinterpret_cast<const float4*>(from)));
      else *values = __ldg(from);
    });
  }
  template <Way WAY>
  __device__ __forceinline__ void look() {
    seen_ = {lines, length};
    each<WAY>([&]<int VEC, bool TRANSPOSED>(float* values, const float*, int line, int col) {
      const int down = lines - line_ - line, across = length - col_ - col;
      const int exist = TRANSPOSED ? (across > 0 ? down : 0) : down > 0 ? across : 0;
      seen_.exist |= unsigned{exist >= VEC} << int(values - values_) / VEC;
      seen_.cut |= exist > 0 && exist < VEC;
#pragma unroll
      for (int i = 0; i < VEC; ++i) values[i] = outside_;
    });
  }

  template <int VEC>
  __device__ __forceinline__ void load(float* values, const float* from, int exist) const {
    if (VEC == 4 && exist >= VEC) return unpack(values, __ldg(reinterpret_cast<const float4*>(from)));
#pragma unroll
    for (int i = 0; i < VEC; ++i) values[i] = i < exist ? __ldg(from + i) : outside_;
  }

  // use(the values, where they come from, row, column) for all that the thread moves at a time. The outer loop follows
  // ld, as in TileCopy: addresses worked out one by one took more registers than there are.
  template <Way WAY, class Use>
  __device__ __forceinline__ void each(const Use& use) {
    if constexpr (WAY == Way::any) {
      if (way_ == Way::by16) each<Way::by16>(use);
      else if (way_ == Way::by4) each<Way::by4>(use);
      else if (way_ == Way::transposed) each<Way::transposed>(use);
      else if constexpr (FOURS) each<Way::transposed16>(use);
    } else if constexpr (WAY == Way::by16) rounds<4, THREADS / (UNIT16 / 4), UNIT16, false>(use);
    else if constexpr (WAY == Way::by4) rounds<1, THREADS / UNIT, UNIT, false>(use);
    else if constexpr (WAY == Way::transposed) rounds<1, THREADS / 8, 8, true>(use);
    else rounds<4, THREADS / 2, 8, true>(use);
  }
  template <int VEC, int OUTER_STEP, int INNER_STEP, bool TRANSPOSED, class Use>
  __device__ __forceinline__ void rounds(const Use& use) {
    constexpr int OUTER = TRANSPOSED ? LEN : LINES, INNER = TRANSPOSED ? LINES : LEN;
    static_assert(OUTER % OUTER_STEP == 0 && INNER % INNER_STEP == 0, "a tile is whole rounds of copies");
    const float* from = from_;
    float* values = values_;
#pragma unroll
    for (int outer = 0; outer < OUTER; outer += OUTER_STEP, from += OUTER_STEP * ld_) {
#pragma unroll
      for (int inner = 0; inner < INNER; inner += INNER_STEP, values += VEC)
        use.template operator()<VEC, TRANSPOSED>(values, from + inner, TRANSPOSED ? inner : outer,
                                                 TRANSPOSED ? outer : inner);
      // One address follows from the one before, not each from the first. Of few steps the products wait for that.
      if constexpr (MANY_STEPS) asm("" : "+l"(from));
    }
  }
};

}  // namespace fl
