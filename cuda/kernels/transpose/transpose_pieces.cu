// Narrow matrices, and stacks of small ones: whole pieces of memory through shared memory, in the order of A on the way
// in and in the order of B on the way out. A tile of fixed size would be mostly empty.
//
// A piece is some matrices, or some rows or columns of one, 16 KiB at most. Where the rows have no gaps between them
// the piece is one run of memory, whatever the shape. 32-byte sectors: all but a few at the ends of runs are read and
// written whole. Bank conflicts: few; a word of padding after every 32 spreads columns of 2, 4, 8 and 16 over the
// banks. Bound: memory, and the two divisions that tell where an element belongs.
#include <algorithm>

#include "core/problem.h"
#include "cuda/kernels/common/launch.cuh"

namespace fl {
namespace {

constexpr int PIECE_THREADS = 256, MOST = 4096;  // floats of a piece

// Division of numbers up to MOST by multiplication.
struct Divisor {
  unsigned value, factor;
  explicit Divisor(int64_t d)
      : value(static_cast<unsigned>(d)), factor(d > 1 ? static_cast<unsigned>((int64_t{1} << 32) / d + 1) : 0) {}
  __device__ __forceinline__ unsigned quotient(unsigned x) const { return value == 1 ? x : __umulhi(x, factor); }
};

// How a stack of matrices is cut into pieces of at most `most` floats.
struct Pieces {
  unsigned matrices;  // of a piece
  Divisor rows, cols;
  unsigned row_pieces, col_pieces;
  bool a_dense, b_dense;  // a piece is one run of memory

  // Of many rows as many as fit beside the columns of a narrow matrix; of few rows all.
  static int64_t rows_of(const TransposeArgs& p, int64_t most) {
    return std::min(p.m, p.n <= p.m ? most / std::min<int64_t>(p.n, 32) / 32 * 32 : 32);
  }
  static int64_t cols_of(const TransposeArgs& p, int64_t most) {
    const int64_t fit = most / rows_of(p, most);
    return p.n <= fit ? p.n : fit / 32 * 32;
  }
  Pieces(const TransposeArgs& p, int64_t most)
      : matrices(1),
        rows(rows_of(p, most)),
        cols(cols_of(p, most)),
        row_pieces(static_cast<unsigned>(ceil_div(p.m, rows.value))),
        col_pieces(static_cast<unsigned>(ceil_div(p.n, cols.value))) {
    if (row_pieces == 1 && col_pieces == 1) matrices = static_cast<unsigned>(std::min(p.batch, most / (p.m * p.n)));
    a_dense = col_pieces == 1 && p.a.rs == p.n && (matrices == 1 || p.a.bs == p.m * p.n);
    b_dense = row_pieces == 1 && p.b.rs == p.m && (matrices == 1 || p.b.bs == p.m * p.n);
  }
  unsigned blocks(const TransposeArgs& p) const {
    return row_pieces * col_pieces * static_cast<unsigned>(ceil_div(p.batch, matrices));
  }
};

__device__ __forceinline__ unsigned padded(unsigned x) { return x + x / 32; }

// EACH floats to a thread, all of them under way before the first goes to shared memory.
template <int EACH>
__global__ void __launch_bounds__(PIECE_THREADS, 6) transpose_pieces_kernel(TransposeArgs p, Pieces pieces) {
  __shared__ float tile[EACH * PIECE_THREADS + EACH * PIECE_THREADS / 32];
  pdl_wait();
  const unsigned R = pieces.rows.value, C = pieces.cols.value, in_batch = pieces.row_pieces * pieces.col_pieces;
  const int64_t first = int64_t{blockIdx.x / in_batch} * pieces.matrices;
  const unsigned piece = blockIdx.x % in_batch;
  const int64_t i = int64_t{piece / pieces.col_pieces} * R, j = int64_t{piece % pieces.col_pieces} * C;
  const unsigned matrices = p.batch - first < pieces.matrices ? unsigned(p.batch - first) : pieces.matrices;
  const unsigned rows = p.m - i < R ? unsigned(p.m - i) : R, cols = p.n - j < C ? unsigned(p.n - j) : C;
  const unsigned all = matrices * R * C, existing = matrices * rows * cols;
  const float* a = p.a.data + first * p.a.bs + i * p.a.rs + j;
  float* b = p.b.data + first * p.b.bs + j * p.b.rs + i;

  float part[EACH];
#pragma unroll
  for (int k = 0; k < EACH; ++k) {
    const unsigned e = threadIdx.x + k * PIECE_THREADS;
    if (pieces.a_dense) {
      part[k] = e < existing ? __ldg(a + e) : 0.0f;
    } else {
      const unsigned line = pieces.cols.quotient(e), c = e - line * C, g = pieces.rows.quotient(line), r = line - g * R;
      const bool exists = e < all && r < rows && c < cols;
      part[k] = exists ? __ldg(a + g * p.a.bs + r * p.a.rs + c) : 0.0f;
    }
  }
#pragma unroll
  for (int k = 0; k < EACH; ++k) tile[padded(threadIdx.x + k * PIECE_THREADS)] = part[k];
  __syncthreads();
#pragma unroll 4
  for (int k = 0; k < EACH; ++k) {
    const unsigned o = threadIdx.x + k * PIECE_THREADS;
    if (o >= all) break;
    const unsigned line = pieces.rows.quotient(o), r = o - line * R, g = pieces.cols.quotient(line), c = line - g * C;
    if (r >= rows || c >= cols) continue;
    const float v = tile[padded((g * R + r) * C + c)];
    if (pieces.b_dense) b[o] = v;
    else b[g * p.b.bs + c * p.b.rs + r] = v;
  }
}

template <int EACH>
void launch(const TransposeArgs& p, const Context& ctx) {
  const Pieces pieces(p, EACH * PIECE_THREADS);
  launch_kernel<transpose_pieces_kernel<EACH>>({pieces.blocks(p), PIECE_THREADS}, ctx, p, pieces);
}

}  // namespace

// Small pieces where there would be too few for every multiprocessor.
void transpose_pieces(const TransposeArgs& p, const Context& ctx) {
  if (p.m * p.n * p.batch < int64_t{2} * MOST * ctx.sm_count) return launch<4>(p, ctx);
  launch<MOST / PIECE_THREADS>(p, ctx);
}

}  // namespace fl
