// Narrow matrices, 2 to 16 columns (tall) or rows (wide) beside a long side. A warp turns some lines of the long side
// through shared memory of its own: no barrier of the block, and since the width is known to the compiler no division
// and hardly an address.
//
// Where the narrow dimension is contiguous, rows without gaps are one run of memory: 16-byte accesses if it is aligned.
// The other side goes by 4-byte accesses, 32 neighbours of a long row at a time, whatever its alignment. Shared memory
// is laid out as the run; a lane takes one line of it by the widest accesses that the width allows. Bank conflicts:
// none, where the width is 8 or 16 four floats are left free behind every 32.
//
// Large results whose long rows start anywhere would have their sectors cut between the warps that write them. There a
// warp reads eight lines more than it writes, and writes of each long row a piece that starts on a sector.
//
// Bound: memory, and for the smallest the launch. docs/notes/gemv_transpose.md says what lost.
#include <algorithm>
#include <utility>

#include "core/layout.h"
#include "core/problem.h"
#include "cuda/kernels/common/launch.cuh"

namespace fl {

void transpose_pieces(const TransposeArgs& p, const Context& ctx);

namespace {

constexpr int THREADS = 128, WARPS = THREADS / 32, NARROWEST = 2, WIDEST = 16, SECTOR = 8;  // floats
constexpr int64_t SMALL = 1 << 20, LONG = 1024;                                             // floats, lines

// What a warp turns, ROWS lines of N floats, as they lie in shared memory; CUT: and SECTOR lines before them.
template <int WIDTH, bool CUT_ROWS>
struct Strip {
  static constexpr bool CUT = CUT_ROWS;
  static constexpr int N = WIDTH, FLOATS = CUT ? 16 : 8, LEAST = CUT ? 2 : 1;
  static constexpr int TURNS = FLOATS / N > LEAST ? FLOATS / N : LEAST;  // lines of a lane
  static constexpr int ROWS = 32 * TURNS, LINES = ROWS + (CUT ? SECTOR : 0), ELEMENTS = LINES * N;
  static constexpr int VECTOR = N % 4 == 0 ? 4 : N % 2 == 0 ? 2 : 1;  // floats of an access to a line
  static constexpr int GAP = N % 8 == 0 ? 4 : 0;                      // floats left free behind every 32
  struct alignas(16) Memory {
    float of[ELEMENTS + (ELEMENTS + 31) / 32 * GAP];
  };
  static __device__ __forceinline__ int place(int e) { return e + e / 32 * GAP; }

  // The floats of a line from `from` on, VECTOR of them, and back.
  static __device__ __forceinline__ void load(float* v, const float* from) {
    if constexpr (VECTOR == 4) {
      const float4 x = *reinterpret_cast<const float4*>(from);
      v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
    } else if constexpr (VECTOR == 2) {
      const float2 x = *reinterpret_cast<const float2*>(from);
      v[0] = x.x, v[1] = x.y;
    } else {
      v[0] = *from;
    }
  }
  static __device__ __forceinline__ void store(float* to, const float* v) {
    if constexpr (VECTOR == 4) *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
    else if constexpr (VECTOR == 2) *reinterpret_cast<float2*>(to) = make_float2(v[0], v[1]);
    else *to = v[0];
  }
};

struct NarrowGrid {
  unsigned blocks;  // of a matrix
  bool by16;        // the run is aligned and has no gaps
  bool few;         // the launch is what counts: the next kernel may start at once
};

// Lines `first` to `last` of the run into shared memory. Accesses past the end read what is there once more: a
// condition on a load makes the compiler wait for one before it issues the next.
template <class S>
__device__ __forceinline__ void read_run(float* memory, const float* a, int64_t lda, int first, int last, bool by16,
                                         int lane) {
  if (by16 && first == 0 && last == S::LINES) {
    constexpr int QUADS = S::ELEMENTS / 4, EACH = (QUADS + 31) / 32;
    float4 v[EACH];
#pragma unroll
    for (int i = 0; i < EACH; ++i) v[i] = __ldg(reinterpret_cast<const float4*>(a) + min(32 * i + lane, QUADS - 1));
#pragma unroll
    for (int i = 0; i < EACH; ++i)
      if (32 * i + 32 <= QUADS || 32 * i + lane < QUADS)
        *reinterpret_cast<float4*>(memory + S::place(4 * (32 * i + lane))) = v[i];
    return;
  }
  constexpr int EACH = (S::ELEMENTS + 31) / 32;
  float v[EACH];
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int e = max(min(32 * i + lane, last * S::N - 1), first * S::N);
    v[i] = __ldg(a + e / S::N * lda + e % S::N);
  }
#pragma unroll
  for (int i = 0; i < EACH; ++i)
    if (32 * i + 32 <= S::ELEMENTS || 32 * i + lane < S::ELEMENTS) memory[S::place(32 * i + lane)] = v[i];
}

// The first `rows` lines back.
template <class S>
__device__ __forceinline__ void write_run(const float* memory, float* b, int64_t ldb, int rows, bool by16, int lane) {
  if (by16 && rows == S::ROWS) {
#pragma unroll
    for (int i = 0; 32 * i < S::ELEMENTS / 4; ++i)
      if (32 * i + 32 <= S::ELEMENTS / 4 || 32 * i + lane < S::ELEMENTS / 4)
        reinterpret_cast<float4*>(b)[32 * i + lane] =
            *reinterpret_cast<const float4*>(memory + S::place(4 * (32 * i + lane)));
    return;
  }
#pragma unroll
  for (int i = 0; i < S::ELEMENTS / 32; ++i) {
    const int e = 32 * i + lane;
    if (e < rows * S::N) b[e / S::N * ldb + e % S::N] = memory[S::place(e)];
  }
}

// Pieces of the long rows of A into shared memory.
template <class S>
__device__ __forceinline__ void read_rows(float* memory, const float* a, int64_t lda, int rows, int lane) {
  float v[S::TURNS][S::N];
#pragma unroll
  for (int t = 0; t < S::TURNS; ++t)
#pragma unroll
    for (int c = 0; c < S::N; ++c) v[t][c] = __ldg(a + c * lda + min(32 * t + lane, rows - 1));
#pragma unroll
  for (int t = 0; t < S::TURNS; ++t)
#pragma unroll
    for (int c = 0; c < S::N; c += S::VECTOR) S::store(memory + S::place((32 * t + lane) * S::N + c), &v[t][c]);
}

// And pieces of the long rows of B out of it. Of the lines those from `first` to `last` exist. CUT: a piece begins at
// the first sector behind the strip's first line.
template <class S>
__device__ __forceinline__ void write_rows(const float* memory, float* b, int64_t ldb, int first, int last, int lane) {
  if constexpr (S::CUT) {
#pragma unroll
    for (int c = 0; c < S::N; ++c, b += ldb) {
      const int start = -static_cast<int>(reinterpret_cast<uintptr_t>(b) / sizeof(float)) & (SECTOR - 1);
#pragma unroll
      for (int t = 0; t < S::TURNS; ++t) {
        const int r = start + 32 * t + lane;
        if (r >= first && r < last) b[r] = memory[S::place(r * S::N + c)];
      }
    }
    return;
  }
#pragma unroll
  for (int t = 0; t < S::TURNS; ++t) {
    if (32 * t + lane >= last) return;
#pragma unroll
    for (int c = 0; c < S::N; c += S::VECTOR) {
      float v[S::VECTOR];
      S::load(v, memory + S::place((32 * t + lane) * S::N + c));
#pragma unroll
      for (int i = 0; i < S::VECTOR; ++i) b[(c + i) * ldb + 32 * t + lane] = v[i];
    }
  }
}

template <class S, bool TALL>
__global__ void __launch_bounds__(THREADS) transpose_narrow_kernel(TransposeArgs p, NarrowGrid grid) {
  __shared__ typename S::Memory memories[WARPS];
  pdl_wait();
  if (grid.few) pdl_launch_next();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float* memory = memories[warp].of;
  const int64_t batch = blockIdx.x / grid.blocks, length = TALL ? p.m : p.n;
  const int64_t row = (int64_t{blockIdx.x % grid.blocks} * WARPS + warp) * S::ROWS - (S::CUT ? SECTOR : 0);
  if (row >= length) return;
  const int first = row < 0 ? static_cast<int>(-row) : 0;
  const int last = length - row < S::LINES ? static_cast<int>(length - row) : S::LINES;
  const float* a = p.a.data + batch * p.a.bs + row * (TALL ? p.a.rs : 1);
  float* b = p.b.data + batch * p.b.bs + row * (TALL ? 1 : p.b.rs);
  if constexpr (TALL) read_run<S>(memory, a, p.a.rs, first, last, grid.by16, lane);
  else read_rows<S>(memory, a, p.a.rs, last, lane);
  __syncwarp();
  if constexpr (TALL) write_rows<S>(memory, b, p.b.rs, first, last, lane);
  else write_run<S>(memory, b, p.b.rs, last, grid.by16, lane);
}

template <class S, bool TALL>
void launch(const TransposeArgs& p, const Context& ctx) {
  const int64_t length = (TALL ? p.m : p.n) + (S::CUT ? SECTOR : 0);
  const int64_t ld = TALL ? p.a.rs : p.b.rs, bs = p.batch == 1 ? 0 : TALL ? p.a.bs : p.b.bs;
  const bool aligned16 = TALL ? aligned<4>(p.a.data, bs) : aligned<4>(p.b.data, bs);
  const NarrowGrid grid{static_cast<unsigned>(ceil_div(length, WARPS * S::ROWS)), ld == S::N && aligned16,
                        p.m * p.n * p.batch < SMALL};
  launch_kernel<transpose_narrow_kernel<S, TALL>>({grid.blocks * static_cast<unsigned>(p.batch), THREADS}, ctx, p,
                                                  grid);
}

template <int WIDTH>
void launch_width(const TransposeArgs& p, const Context& ctx) {
  if (p.n > p.m) return launch<Strip<WIDTH, false>, false>(p, ctx);
  const bool cuts = !aligned<SECTOR>(p.b.data, p.b.rs, p.batch == 1 ? 0 : p.b.bs);
  if (cuts && p.m >= LONG && p.m * p.n * p.batch >= SMALL) return launch<Strip<WIDTH, true>, true>(p, ctx);
  launch<Strip<WIDTH, false>, true>(p, ctx);
}

template <int... OFFSETS>
void launch_narrow(const TransposeArgs& p, const Context& ctx, std::integer_sequence<int, OFFSETS...>) {
  const int64_t width = std::min(p.m, p.n);
  ((width == NARROWEST + OFFSETS ? launch_width<NARROWEST + OFFSETS>(p, ctx) : void()), ...);
}

}  // namespace

void transpose_narrow(const TransposeArgs& p, const Context& ctx) {
  const int64_t width = std::min(p.m, p.n);
  if (width < NARROWEST || width > WIDEST) return transpose_pieces(p, ctx);
  launch_narrow(p, ctx, std::make_integer_sequence<int, WIDEST - NARROWEST + 1>());
}

}  // namespace fl
