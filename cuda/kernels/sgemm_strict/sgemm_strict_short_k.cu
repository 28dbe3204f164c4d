// Strict SGEMM with a short k, where writing C is most of the work: C goes out in whole rows of a tile, 32 neighbouring
// floats to a store, whatever its alignment.
//
//   tile      threads   thread tile   stages  blocks on a multiprocessor
//   32 x 64     128        8 x 2        4               4               where there are few tiles
//   64 x 64     128       16 x 2        2               5               where these fill the device
//   64 x 128    256        8 x 4        2               4               and k is 16 at most and rows of C are long
//
// A warp owns 8 or 16 rows. Its lanes stand side by side along n and hold every 32nd column: reads of B hit 32 banks,
// and one read of A serves all lanes. k comes in steps of 32, the next one or three of them under way meanwhile. With
// one stage, and other blocks to fill the wait, 201 x 441 x 57 took 6.3 instead of 4.7 us; large products the same.
// Ascending k, one chain of FMAs for each output.
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/sgemm_strict/register_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_epilogue.cuh"
#include "plan/strict/short_k_plan.h"

namespace fl {
namespace {

template <ShortKTile TILE>
struct ShortK {
  static_assert(TILE.sound());
  static constexpr int BM = TILE.BM, BN = TILE.BN, BK = TILE.BK, TM = TILE.TM, TN = TILE.TN();
  static constexpr int STAGES = TILE.stages, THREADS = TILE.threads();
  // Code for less than 8.0 knows no asynchronous copies, and its registers hold what is under way.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  static constexpr int BLOCKS = 1;
#else
  static constexpr int BLOCKS = TILE.blocks;
#endif
  using CopyA = TileCopy<BK, BM, THREADS, Tail::none>;
  using CopyB = TileCopy<BK, BN, THREADS, Tail::none>;
  static constexpr int STAGE_BYTES = TILE.stage_bytes(), SHARED_BYTES = TILE.shared_bytes();
  static constexpr bool FILLS = BM == 64;  // there are blocks for all multiprocessors
};

struct ShortKPlan {
  Operand a, b;
  TileGrid grid;
};

// The fragments of one k.
template <class T>
struct ShortKFragments {
  float a[T::TM], b[T::TN];
  __device__ __forceinline__ void load(uint32_t a_line, uint32_t b_line) {
#pragma unroll
    for (int i = 0; i < T::TM; i += 4) unpack(&a[i], ptx::load4(a_line + i * 4));
#pragma unroll
    for (int j = 0; j < T::TN; ++j) b[j] = ptx::load1(b_line + j * 128);
  }
};

// acc += the product of the stage's first `lines` of k, in ascending order.
template <class T>
__device__ __forceinline__ void multiply_stage(float (&acc)[T::TM][T::TN], uint32_t a, uint32_t b, int lines) {
  constexpr int A_LINE = T::CopyA::LD * 4, B_LINE = T::CopyB::LD * 4;
#pragma unroll(T::BLOCKS* T::THREADS == 1024 ? 2 : 4)
  for (int l = 0; l < lines; ++l) {
    ShortKFragments<T> of;
    of.load(a + l * A_LINE, b + l * B_LINE);
    outer_product(acc, of.a, of.b);
  }
}

// A lane's outputs from `c` on, of which so many rows exist, and the columns before `cols`; WHOLE: all. One address for
// a row, and what a call has in common asked once: with an address and a question about beta for each output 2515 x
// 5910 x 5 took 24.1 instead of 18.8 us.
template <class T, bool WHOLE, bool BETA>
__device__ __forceinline__ void write_tile(const SgemmArgs& p, const float (&acc)[T::TM][T::TN], float* c, int rows,
                                           int cols) {
#pragma unroll
  for (int i = 0; i < T::TM; ++i, c += p.c.rs) {
    if (!WHOLE && i >= rows) return;
#pragma unroll
    for (int j = 0; j < T::TN; ++j) {
      if (!WHOLE && 32 * j >= cols) continue;
      const LinearCombination scaled{p.alpha, BETA ? p.beta : 0.0f};
      scaled.store(c + 32 * j, acc[i][j]);
    }
  }
}

// Stores a lane's outputs of a tile whose corner is (row, col) of C, of which so many rows and columns exist.
template <class T>
__device__ __forceinline__ void store_tile(const SgemmArgs& p, const Tile& tile, const float (&acc)[T::TM][T::TN],
                                           int tile_rows, int tile_cols, int warp, int lane) {
  const int rows = tile_rows - warp * T::TM, cols = tile_cols - lane;
  const int64_t row = tile.row * T::BM + warp * T::TM, col = tile.col * T::BN + lane;
  float* c = p.c.data + tile.batch * p.c.bs + row * p.c.rs + col;
  if (p.beta != 0.0f) write_tile<T, false, true>(p, acc, c, rows, cols);
  else if (tile_rows == T::BM && tile_cols == T::BN) write_tile<T, true, false>(p, acc, c, rows, cols);
  else write_tile<T, false, false>(p, acc, c, rows, cols);
}

// Without asynchronous copies: the loads of a step wait in registers while the one before it is multiplied, and one
// stage is enough.
template <class T>
__device__ __forceinline__ void block_by_registers(const SgemmArgs& p, const ShortKPlan& plan) {
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t a_tile = ptx::shared_address(memory), b_tile = a_tile + T::CopyA::BYTES;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const Tile tile = plan.grid.tile(blockIdx.x);
  const int64_t row = tile.row * T::BM, col = tile.col * T::BN;
  RegisterCopy<T::BK, T::BM, T::THREADS> a(plan.a, first_of(plan.a, tile.batch, 0, row), minus_zeros, t);
  RegisterCopy<T::BK, T::BN, T::THREADS> b(plan.b, first_of(plan.b, tile.batch, 0, col), plus_zeros, t);
  a.length = static_cast<int>(min(p.m - row, int64_t{T::BM}));
  b.length = static_cast<int>(min(p.n - col, int64_t{T::BN}));
  pdl_wait();
  const auto fetch = [&](int64_t k) {
    a.lines = b.lines = k_left(p.k - k, T::BK);
    a.fetch();
    b.fetch();
    a.next_lines();
    b.next_lines();
  };
  if (p.k > 0) fetch(0);
  float acc[T::TM][T::TN] = {};
#pragma unroll 1
  for (int64_t k = 0; k < p.k; k += T::BK) {
    a.store(a_tile);
    b.store(b_tile);
    __syncthreads();
    if (k + T::BK < p.k) fetch(k + T::BK);
    multiply_stage<T>(acc, a_tile + warp * T::TM * 4, b_tile + lane * 4, k_left(p.k - k, T::BK));
    __syncthreads();
  }
  store_tile<T>(p, tile, acc, a.length, b.length, warp, lane);
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, code_for<100, 120> ? 1 : T::BLOCKS)
    strict_short_k_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ ShortKPlan plan) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const Tile tile = plan.grid.tile(blockIdx.x);
  const int64_t row = tile.row * T::BM, col = tile.col * T::BN;
  typename T::CopyA a(plan.a, first_of(plan.a, tile.batch, 0, row), minus_zeros, t);
  typename T::CopyB b(plan.b, first_of(plan.b, tile.batch, 0, col), plus_zeros, t);
  a.length = static_cast<int>(min(p.m - row, int64_t{T::BM}));
  b.length = static_cast<int>(min(p.n - col, int64_t{T::BN}));
  pdl_wait();
  int64_t to_copy = p.k;
  int into = 0, from = 0;
  auto copy_next = [&] {
    if (to_copy > 0) {
      a.lines = b.lines = k_left(to_copy, T::BK);
      a(shared + into * T::STAGE_BYTES);
      b(shared + into * T::STAGE_BYTES + T::CopyA::BYTES);
      a.next_lines();
      b.next_lines();
      to_copy -= T::BK;
      into = into + 1 == T::STAGES ? 0 : into + 1;
    }
    ptx::commit_copies();
  };
#pragma unroll 1
  for (int s = 0; s < T::STAGES - 1; ++s) copy_next();
  float acc[T::TM][T::TN] = {};
#pragma unroll 1
  for (int64_t k = 0; k < p.k; k += T::BK) {
    ptx::wait_copies<T::STAGES - 2>();
    __syncthreads();  // everybody's copies of this stage have arrived, and the one that is filled next has been read
    copy_next();
    const uint32_t a_tile = shared + from * T::STAGE_BYTES, b_tile = a_tile + T::CopyA::BYTES;
    const int lines = k_left(p.k - k, T::BK);
    multiply_stage<T>(acc, a_tile + warp * T::TM * 4, b_tile + lane * 4, lines);
    from = from + 1 == T::STAGES ? 0 : from + 1;
  }
  if (T::FILLS) pdl_launch_next();  // of few blocks some would find the next kernel's in their place
  store_tile<T>(p, tile, acc, a.length, b.length, warp, lane);
#else
  block_by_registers<T>(p, plan);
#endif
}

// For devices that have none. Code for them is such a kernel by either name.
template <class T>
__global__ void __launch_bounds__(T::THREADS)
    strict_short_k_by_registers_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ ShortKPlan plan) {
  block_by_registers<T>(p, plan);
}

template <class T>
void launch_short_k(const SgemmArgs& p, const Context& ctx) {
  const ShortKPlan plan{operand(p.a, p.a.cs, p.a.rs), operand(p.b, p.b.rs, p.b.cs),
                        TileGrid(p.m, p.n, p.batch, T::BM, T::BN)};
  if (ctx.device->has(feature_cp_async))
    launch_kernel<strict_short_k_kernel<T>>({plan.grid.blocks(), T::THREADS, T::SHARED_BYTES}, ctx, p, plan);
  else
    launch_kernel<strict_short_k_by_registers_kernel<T>>({plan.grid.blocks(), T::THREADS, T::STAGE_BYTES}, ctx, p,
                                                         plan);
}

}  // namespace

void sgemm_strict_short_k(const SgemmArgs& p, const Context& ctx) {
  const ShortKTile& tile = short_k_tile(p);
  if (&tile == &short_k_large) return launch_short_k<ShortK<short_k_large>>(p, ctx);
  if (&tile == &short_k_square) return launch_short_k<ShortK<short_k_square>>(p, ctx);
  launch_short_k<ShortK<short_k_few>>(p, ctx);
}

}  // namespace fl
