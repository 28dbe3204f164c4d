// What the two kernels for tall-skinny products share: the work of a block, the copies of both operands into shared
// memory, the walk along k, and the sums of a k that several blocks have split.
//
// The long operand, A, comes through a ring of its own for each warp, by asynchronous copies: no barrier, two or three
// steps in flight, and what is not aligned travels by 4-byte copies into the same places. The other one, at most 16
// columns, comes in chunks of k that the warps of a block share, with a barrier for each.
//
// Multiplied is in pairs of k. That is what registers allow: 64 sums, and a pair of 8 columns, in 128 of them (with
// four k at a time the compiler spilled, and 16384 x 16384 times 8 columns took 290 us).
#pragma once

#include "core/device_spec.h"
#include "core/layout.h"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/ptx.cuh"
#include "cuda/kernels/common/tiles.cuh"
#include "plan/tall_skinny_plan.h"

namespace fl {

// What a block of as many warps as the plan wants takes at most. Where a block may have less, it gets fewer warps.
constexpr int MOST_SHARED_BYTES = capability(90).shared_per_block;

// How many threads a kernel T may have to a block. Compilers for targets before 9.0 want more than the 128 registers
// that are left to each of 512 where 8 columns are, or 16 that are not wide; nor has shared memory room for many more.
template <class T>
constexpr int most_threads(bool for_sm90) {
  return for_sm90 || T::THREADS < 512 || T::Chunk::NR < 8 ? T::THREADS : T::THREADS / 2;
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr bool code_for_sm90 = false;
#else
constexpr bool code_for_sm90 = true;
#endif

struct TallSkinnyArgs {
  SgemmArgs p;  // the long operand on the left
  float* sums;  // of the ranges of k, [split][batch][m][n]; not used where there is one
  unsigned row_blocks, panels, splits;
  int64_t split_k;
  int chunk_bytes, slots;  // of shared memory: a chunk of B; steps in a ring
  bool a_by16, b_by16;
};

// What one block works on.
struct TallSkinnyBlock {
  int64_t batch, split, row, k;  // the first row and the first k
  int64_t count;                 // of k
  int column, columns;           // the first of the panel, and how many exist

  template <int NR>
  static __device__ __forceinline__ TallSkinnyBlock of(const TallSkinnyArgs& args, unsigned rows) {
    const unsigned row_block = blockIdx.x % args.row_blocks, rest = blockIdx.x / args.row_blocks;
    const unsigned panel = rest % args.panels, outer = rest / args.panels;
    const int64_t split = outer % args.splits, first = split * args.split_k;
    const int column = static_cast<int>(panel) * NR;
    return {outer / args.splits,
            split,
            int64_t{row_block} * rows,
            first,
            min(args.split_k, args.p.k - first),
            column,
            static_cast<int>(min(args.p.n - column, int64_t{NR}))};
  }
};

// Copies what exists of a chunk of B, `exist` k, from `from` on; the rest of a step becomes zero. Columns that do not
// exist become zero in the `first` two chunks: nothing else comes in their place.
template <class Chunk>
__device__ __forceinline__ void copy_part_of_chunk(const TallSkinnyArgs& args, const TallSkinnyBlock& at, uint32_t to,
                                                   const float* from, int exist, bool first) {
  constexpr int NR = Chunk::NR, KC = Chunk::KC, QUADS = NR < 4 ? 1 : NR / 4;
  constexpr bool COLUMN_MAJOR = Chunk::COLUMN > Chunk::K;
  constexpr int ALONG = COLUMN_MAJOR ? KC / 4 : QUADS, LINES = COLUMN_MAJOR ? NR : KC;
  const auto& b = args.p.b;
  const int all = (exist + 127) / 128 * 128;
  const int columns = first ? NR : at.columns;
  if (args.b_by16) {
#pragma unroll 1
    for (int t = threadIdx.x; t < ALONG * LINES; t += blockDim.x) {
      const int k = COLUMN_MAJOR ? t % ALONG * 4 : t / QUADS, col = COLUMN_MAJOR ? t / ALONG : t % QUADS * 4;
      if (k >= all || col >= columns) continue;
      const bool exists = k < exist && col < at.columns;
      const float* source = exists ? from + k * b.rs + col * b.cs : from;
      ptx::copy_async16_filled(to + Chunk::place(k, col), source,
                               exists ? (COLUMN_MAJOR ? 4 * min(exist - k, 4) : 16) : 0);
    }
  } else if constexpr (COLUMN_MAJOR) {  // a warp to a column
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
#pragma unroll 1
    for (int col = threadIdx.x / 32; col < columns; col += warps) {
      const bool column_exists = col < at.columns;
      const float* source = from + (column_exists ? col * b.cs : 0);
#pragma unroll 2
      for (int k = lane; k < all; k += 32) {
        const bool exists = k < exist && column_exists;
        ptx::copy_async4(to + Chunk::place(k, col), exists ? source + k : from, exists ? 4 : 0);
      }
    }
  } else if constexpr (NR == 16) {  // with an address that moves on, the kernel for aligned rows spills
#pragma unroll 1
    for (int t = threadIdx.x; t < all * NR; t += blockDim.x) {
      const int k = t / NR, col = t % NR;
      if (col >= columns) continue;
      const bool exists = k < exist && col < at.columns;
      ptx::copy_async4(to + Chunk::place(k, col), exists ? from + k * b.rs + col : from, exists ? 4 : 0);
    }
  } else {  // neighbouring threads to a row
    const int col = threadIdx.x % NR, together = blockDim.x / NR;
    if (col >= columns) return;
    const bool column_exists = col < at.columns;
    const float* source = from + (column_exists ? col : 0) + threadIdx.x / NR * b.rs;
#pragma unroll 1
    for (int k = threadIdx.x / NR; k < all; k += together, source += together * b.rs) {
      const bool exists = k < exist && column_exists;
      ptx::copy_async4(to + Chunk::place(k, col), exists ? source : from, exists ? 4 : 0);
    }
  }
}

// Copies a chunk of B, k = first to first + KC - 1 of the block's range; what does not exist in a step of it becomes
// zero. A chunk that exists as a whole goes without a question: what the others ask took a tenth of the instructions of
// a product.
template <class Chunk>
__device__ __forceinline__ void copy_chunk(const TallSkinnyArgs& args, const TallSkinnyBlock& at, uint32_t to,
                                           int64_t first) {
  constexpr int NR = Chunk::NR, KC = Chunk::KC, QUADS = NR < 4 ? 1 : NR / 4;
  constexpr bool COLUMN_MAJOR = Chunk::COLUMN > Chunk::K;
  constexpr int ALONG = COLUMN_MAJOR ? KC / 4 : QUADS,
                LINES = COLUMN_MAJOR ? NR : KC;  // copies to a line of memory, and lines
  const auto& b = args.p.b;
  const float* from = b.data + at.batch * b.bs + (at.k + first) * b.rs + at.column * b.cs;
  const int exist = static_cast<int>(min(at.count - first, int64_t{KC}));
  // Beside it the kernel for 8 columns of a row-major B keeps addresses on the stack: 254 instead of 251 us with
  // A of 16384 x 16384.
  constexpr bool ROOM = NR != 8 || COLUMN_MAJOR;
  if (ROOM && args.b_by16 && exist == KC && at.columns == NR && blockDim.x >= ALONG) {
    const int along = threadIdx.x % ALONG * 4, pass = blockDim.x / ALONG;
    const int64_t ld = COLUMN_MAJOR ? b.cs : b.rs;
    int line = threadIdx.x / ALONG;
    from += line * ld + along;
    constexpr int TOGETHER = KC > 256 ? 4 : 1;  // more takes registers that other kernels do not have
#pragma unroll TOGETHER
    for (; line < LINES; line += pass, from += pass * ld)
      ptx::copy_async16(to + (COLUMN_MAJOR ? Chunk::place(along, line) : Chunk::place(line, along)), from);
    return;
  }
  copy_part_of_chunk<Chunk>(args, at, to, from, exist, first <= KC);
}

// A chunk of B in shared memory. Row-major: pairs of k, 2 * NR floats and padding that sends the lanes of a warp, which
// read neighbouring pairs, to different banks. Column-major (COLUMN_MAJOR): a column after the other.
template <int COLUMNS, bool COLUMN_MAJOR>
struct TallSkinnyChunk {
  static constexpr int NR = COLUMNS, KC = 256;
  static constexpr int PAIR = COLUMN_MAJOR ? 8 : NR == 2 ? 16 : (NR / 2 + 1) * 16;  // bytes to the next pair of k
  static constexpr int COLUMN = COLUMN_MAJOR ? (KC + 4) * 4 : 4,
                       K = COLUMN_MAJOR ? 4 : NR * 4;  // to the next column, within a pair
  static constexpr int bytes(int k) {                  // whole lines of 128, so that what follows starts on one too
    return COLUMN_MAJOR ? (NR * COLUMN + 127) / 128 * 128 : k / 2 * PAIR;
  }

  static __device__ __forceinline__ uint32_t place(int k, int col) { return k / 2 * PAIR + k % 2 * K + col * COLUMN; }

  // x[i][c]: the first NC columns from `from` on of the two k i of a pair.
  template <int NC>
  static __device__ __forceinline__ void load_pair(float (&x)[2][NC], uint32_t from) {
    if constexpr (COLUMN_MAJOR) {
#pragma unroll
      for (int c = 0; c < NC; ++c) {
        const float2 v = ptx::load2(from + c * COLUMN);
        x[0][c] = v.x, x[1][c] = v.y;
      }
    } else if constexpr (NC == 2) {
      const float4 v = ptx::load4(from);
      x[0][0] = v.x, x[0][1] = v.y, x[1][0] = v.z, x[1][1] = v.w;
    } else {
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int c = 0; c < NC; c += 4) {
          const float4 v = ptx::load4(from + i * K + c * 4);
          x[i][c] = v.x, x[i][c + 1] = v.y, x[i][c + 2] = v.z, x[i][c + 3] = v.w;
        }
    }
  }
};

// One warp's copies of A, a step after the other: LINES lines of LEN floats. Those that do not exist become zero.
template <int LINES, int LEN>
class TallSkinnyCopy {
 public:
  __device__ __forceinline__ TallSkinnyCopy(const float* start, int64_t ld, int64_t advance, bool by16, int lane)
      : ld_(ld), advance_(advance), by16_(by16) {
    line_ = by16 ? lane / ACROSS : 0, col_ = by16 ? lane % ACROSS * 4 : lane;
    from_ = start + line_ * ld + col_;
  }

  __device__ __forceinline__ void step(uint32_t slot, int lines, int length) {
    const uint32_t to = slot + (line_ * LEN + col_) * 4;
    const bool whole = lines >= LINES && length >= LEN;
    const float* line = from_;
    if (by16_ && whole) {
#pragma unroll
      for (int l = 0; l < LINES; l += DOWN, line += DOWN * ld_)
#pragma unroll
        for (int e = 0; e < LEN; e += WIDTH) ptx::copy_async16(to + (l * LEN + e) * 4, line + e);
    } else if (by16_) {
#pragma unroll 2
      for (int l = 0; l < LINES; l += DOWN, line += DOWN * ld_)
#pragma unroll
        for (int e = 0; e < LEN; e += WIDTH) {
          const int floats = max(min(length - col_ - e, 4), 0);
          const bool exists = line_ + l < lines && floats > 0;
          ptx::copy_async16_filled(to + (l * LEN + e) * 4, exists ? line + e : from_, exists ? 4 * floats : 0);
        }
    } else {
#pragma unroll 2
      for (int l = 0; l < LINES; ++l, line += ld_)
#pragma unroll
        for (int e = 0; e < LEN; e += 32) {
          const bool exists = l < lines && col_ + e < length;
          ptx::copy_async4(to + (l * LEN + e) * 4, exists ? line + e : from_, exists ? 4 : 0);
        }
    }
    from_ += advance_;
  }

 private:
  static constexpr int ACROSS = LEN < 128 ? LEN / 4 : 32, DOWN = 32 / ACROSS, WIDTH = 4 * ACROSS;
  const float* from_;  // this lane's first element of the next step
  int64_t ld_, advance_;
  int line_, col_;
  bool by16_;
};

// The walk of a block along its range of k, in `steps` of which a chunk of B has `chunk_steps`. copy_a(step, to) starts
// the warp's copies of a step, multiply(a, b) adds the products of what lies there; b is where the step begins in its
// chunk, `step_bytes` from one to the next.
template <class T, class CopyA, class Multiply>
__device__ __forceinline__ void walk_k(const TallSkinnyArgs& args, const TallSkinnyBlock& at, uint32_t shared,
                                       int steps, int chunk_steps, int step_bytes, const CopyA& copy_a,
                                       const Multiply& multiply) {
  const int chunks = args.split_k > T::Chunk::KC ? 2 : 1;
  const uint32_t ring = shared + chunks * args.chunk_bytes + threadIdx.x / 32 * args.slots * T::SLOT_BYTES;
  const uint32_t end = ring + T::SLOTS * T::SLOT_BYTES;
  uint32_t into = ring, from = ring;
  int copied = 0;
  auto copy_next = [&] {
    if (copied < steps) copy_a(copied, into);
    ptx::commit_copies();
    ++copied;
    into = into + T::SLOT_BYTES == end ? ring : into + T::SLOT_BYTES;
  };
  if (steps > 0) copy_chunk<typename T::Chunk>(args, at, shared, 0);
#pragma unroll 1
  for (int s = 0; s < T::SLOTS - 1; ++s) copy_next();
  int in_chunk = 0;
  uint32_t chunk = shared, other = shared + args.chunk_bytes;
  int64_t next = T::Chunk::KC;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    ptx::wait_copies<T::SLOTS - 2>();
    if (in_chunk == 0) {
      __syncthreads();  // everybody's copies of this chunk have arrived, and the other one is not read any more
      if (next < at.count) copy_chunk<typename T::Chunk>(args, at, other, next);
    } else {
      __syncwarp();  // the same for this warp's ring
    }
    copy_next();
    multiply(from, chunk + in_chunk * step_bytes);
    from = from + T::SLOT_BYTES == end ? ring : from + T::SLOT_BYTES;
    if (++in_chunk == chunk_steps) {
      in_chunk = 0, next += T::Chunk::KC;
      const uint32_t read = chunk;
      chunk = other, other = read;
    }
  }
}

// A finished sum goes to C, or to the workspace where other blocks have the rest of k.
__device__ __forceinline__ void put(const TallSkinnyArgs& args, const TallSkinnyBlock& at, int64_t row, int col,
                                    float sum) {
  const SgemmArgs& p = args.p;
  if (row >= p.m || col >= at.columns) return;
  if (args.splits == 1) return store(p, at.batch, row, at.column + col, sum);
  args.sums[((at.split * p.batch + at.batch) * p.m + row) * p.n + at.column + col] = sum;
}

}  // namespace fl
