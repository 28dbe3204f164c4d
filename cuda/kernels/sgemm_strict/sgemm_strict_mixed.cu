// Strict SGEMM for few tiles and for narrow ones, from compute capability 8.0 on: few warps to a block, several blocks
// to a multiprocessor, and every copy of a step has a place of its own between the FMAs.
//
//   row        tile       groups   thread tile   stages   shared memory   blocks on a multiprocessor
//   64x16m4    64 x 16      4         8 x 4      3 of 32 k     33 KiB              4
//   64x32m4    64 x 32      4         8 x 8      3 of 32       39 KiB              4
//   64x48m4    64 x 48      4         8 x 12     3 of 32       53 KiB              3
//   64x64m4    64 x 64      4         8 x 8      3 of 32       68 KiB              2
//   96x64m2    96 x 64      2        12 x 8      3 of 32       63 KiB              3
//   64x128m2   64 x 128     2         8 x 8      4 of 16       66 KiB              2
//   64x64m1    64 x 64      1         8 x 4      3 of 16       26 KiB              4
//   64x128m1   64 x 128     1         8 x 8      3 of 16       38 KiB              4
//
// All warps copy and multiply. Shared memory serves copies and reads of fragments in the order in which they were
// issued. Where a warp begins all copies of a step at once, the fragments of the next line wait behind them, and FMAs
// for fragments: 64 x 64 tiles took 55 to 76 cycles for a k. One or two copies to a line take 40, the bound of 8 x 8
// sums a thread. For that the ways of the copies are known at compile time: a kernel for each of nine combinations.
//
// Groups take every k_groups-th line of each step; their sums meet in shared memory, in the order of the groups. Where
// there are few tiles k is split over the grid. Of a product with few rows 64 x 16 tiles compute the transposed one.
// The tiles without groups are for a short k and many outputs: nothing is added up at the end, k is not split, and each
// output is one chain of FMAs in ascending k.
#include "cuda/kernels/common/split_k.cuh"
#include "cuda/kernels/sgemm_strict/block_room.cuh"
#include "cuda/kernels/sgemm_strict/spread_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_epilogue.cuh"
#include "plan/strict_plan.h"

namespace fl {
namespace {

template <MixedTile TILE>
struct Mixed {
  static_assert(must_be_sound<TILE>());
  static constexpr int BM = TILE.BM, BN = TILE.BN, BK = TILE.BK, TM = TILE.TM, TN = TILE.TN;
  static constexpr int K_GROUPS = TILE.k_groups, STAGES = TILE.stages;
  static constexpr int BLOCKS =
      code_for<100, 120> ? TILE.blocks - 1 : TILE.blocks;  // for 10.x and 12.x more would spill
  static constexpr bool ONE_BUFFER = TILE.one_buffer;
  static constexpr int WARPS_N = TILE.warps_n(), GROUP_THREADS = TILE.group_threads(), THREADS = TILE.threads();
  static constexpr int A_LD = padded_row(BM), B_LD = padded_row(BN), A_BYTES = padded_bytes(BK, BM);
  static constexpr int STAGE_BYTES = TILE.stage_bytes(), PIPELINE_BYTES = TILE.pipeline_bytes();
  static constexpr int PITCH = padded_row(BN), SUMS_BYTES = TILE.sums_bytes(), SHARED_BYTES = TILE.shared_bytes();
  static constexpr int LINES = BK / K_GROUPS;  // of a whole step for each group
};

struct MixedPlan {
  Operand a, b;
  TileGrid grid;
  float one;  // 1.0f, as a number that the compiler does not know
  bool c_by16;
  unsigned splits;       // ranges of k, each a part of the grid
  int64_t range;         // of k
  int64_t split_stride;  // from the sums of one range to those of the next
};

// A lane's sums and fragments. Those of the next line are loaded while this one is multiplied: into a second buffer, or
// into the first one as its registers fall free, as in mainloop.cuh, where two have no room.
template <class T>
struct MixedSums {
  static constexpr int A_STEP = T::K_GROUPS * T::A_LD * 4, B_STEP = T::K_GROUPS * T::B_LD * 4;  // between its lines
  float acc[T::TM][T::TN] = {};
  float a_frag[T::ONE_BUFFER ? 1 : 2][T::TM], b_frag[T::ONE_BUFFER ? 1 : 2][T::TN];

  __device__ __forceinline__ void load(int to, uint32_t a, uint32_t b) {
#pragma unroll
    for (int i = 0; i < T::TM; i += 4) unpack(&a_frag[to][i], ptx::load4(a + i * 32));
#pragma unroll
    for (int j = 0; j < T::TN; j += 4) unpack(&b_frag[to][j], ptx::load4(b + j * 16));
  }
  // A value of A stays in the reuse cache along a row; rows run back and forth.
  __device__ __forceinline__ void add_product(int of) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int step = 0; step < T::TN; ++step) {
        const int j = i % 2 ? T::TN - 1 - step : step;
        acc[i][j] = fmaf(a_frag[of][i], b_frag[of][j], acc[i][j]);
      }
  }
  __device__ __forceinline__ void add_product_and_load(uint32_t a, uint32_t b) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
      const bool last = i + 1 == T::TM;
#pragma unroll
      for (int step = 0; step < T::TN; ++step) {
        const int j = i % 2 && !last ? T::TN - 1 - step : step;
        acc[i][j] = fmaf(a_frag[0][i], b_frag[0][j], acc[i][j]);
        if (last && j % 4 == 3) unpack(&b_frag[0][j - 3], ptx::load4(b + (j - 3) * 16));
      }
      if (i % 4 == 3) unpack(&a_frag[0][i - 3], ptx::load4(a + (i - 3) * 32));
    }
  }
  // The product of line `line` of a step, while the fragments at a and b arrive; copy() begins copies between.
  template <class Copy>
  __device__ __forceinline__ void line(int line, uint32_t a, uint32_t b, const Copy& copy) {
    if constexpr (T::ONE_BUFFER) {
      add_product_and_load(a, b);
      copy();
    } else {
      load((line + 1) % 2, a, b);
      copy();
      add_product(line % 2);
    }
  }
  // The lines of a step that is not whole.
  __device__ __forceinline__ void rest(uint32_t a, uint32_t b, int lines) {
#pragma unroll 1
    for (int l = 0; l < lines; ++l) {
      load(0, a + l * A_STEP, b + l * B_STEP);
      add_product(0);
    }
  }
  // A 16-byte store wants four neighbouring registers; the products with one free the sums from that (docs).
  __device__ __forceinline__ void leave(uint32_t part, float one) const {
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; j += 4)
        ptx::store4(part + ((i / 4 * 32 + i % 4) * T::PITCH + j * 4) * 4,
                    one * float4{acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]});
  }
};

template <class T>
__device__ __forceinline__ uint32_t next_stage(uint32_t stage, uint32_t first_stage) {
  return stage + T::STAGE_BYTES == first_stage + T::PIPELINE_BYTES ? first_stage : stage + T::STAGE_BYTES;
}

// The copies of a block's tiles, stage by stage, and where its threads are in the stages.
template <class T, CopyPath A_PATH, CopyPath B_PATH>
struct MixedCopies {
  using A = SpreadCopy<T::BK, T::BM, T::THREADS, A_PATH>;
  using B = SpreadCopy<T::BK, T::BN, T::THREADS, B_PATH>;
  static constexpr int COPIES = A::COPIES + B::COPIES;
  A a;
  B b;
  uint32_t into;  // the next stage
  int64_t left;   // k to copy

  // Before the copies of a stage: of a step that is not whole all of them.
  __device__ __forceinline__ void begin() {
    if (left >= T::BK) return;
    if (left > 0) {
      a.copy_lines(into, static_cast<int>(left));
      b.copy_lines(into + T::A_BYTES, static_cast<int>(left));
    }
    a.end();
    b.end();
  }
  // Part PART of PARTS of them.
  template <int PART, int PARTS>
  __device__ __forceinline__ void part() {
    constexpr int first = PART * COPIES / PARTS, end = (PART + 1) * COPIES / PARTS, na = A::COPIES;
    a.template copy<(first < na ? first : na), (end < na ? end : na)>(into);
    b.template copy<(first > na ? first - na : 0), (end > na ? end - na : 0)>(into + T::A_BYTES);
  }
  __device__ __forceinline__ void end(uint32_t first_stage) {
    ptx::commit_copies();
    left -= T::BK;
    into = next_stage<T>(into, first_stage);
  }
};

// The sums of a block's range of k. Between two steps everybody's copies of the next stage arrive, and a barrier says
// that all have read this one; the fragments of the last line are in registers by then.
template <class T, class Copies>
__device__ __forceinline__ void multiply(MixedSums<T>& sums, Copies& copies, uint32_t shared, int64_t left, int group,
                                         uint32_t a_offset, uint32_t b_offset) {
  constexpr int A_STEP = MixedSums<T>::A_STEP, B_STEP = MixedSums<T>::B_STEP, PARTS = T::LINES - 1;
#pragma unroll 1
  for (int s = 0; s < T::STAGES - 1; ++s) {
    copies.begin();
    copies.template part<0, 1>();
    copies.end(shared);
  }
  ptx::wait_copies<T::STAGES - 2>();
  __syncthreads();
  uint32_t stage = shared;
  sums.load(0, stage + a_offset, stage + b_offset);
#pragma unroll 1
  for (; left >= T::BK; left -= T::BK) {
    copies.begin();
    const uint32_t a = stage + a_offset, b = stage + b_offset;
    [&]<int... LINE>(std::integer_sequence<int, LINE...>) {
      (sums.line(LINE, a + (LINE + 1) * A_STEP, b + (LINE + 1) * B_STEP, [&] { copies.template part<LINE, PARTS>(); }),
       ...);
    }(std::make_integer_sequence<int, PARTS>());
    copies.end(shared);
    ptx::wait_copies<T::STAGES - 2>();
    __syncthreads();
    stage = next_stage<T>(stage, shared);
    sums.line(T::LINES - 1, stage + a_offset, stage + b_offset, [] {});
  }
  sums.rest(stage + a_offset, stage + b_offset, (static_cast<int>(left) - group + T::K_GROUPS - 1) / T::K_GROUPS);
}

// Stores the sums of a block without groups, of which few warps have many rows each: four rows of a warp at a time.
template <class T, bool BETA>
__device__ __forceinline__ void store_rows(const SgemmArgs& p, const Corner& at, uint32_t sums, int t) {
  constexpr int WARPS = T::THREADS / 32;
  static_assert(T::BM % (4 * WARPS) == 0 && T::BN % 32 == 0);
  const LinearCombination scaled{p.alpha, BETA ? p.beta : 0.0f};
  const int lane = t % 32;
#pragma unroll 1
  for (int row = t / 32; row < min(at.rows, T::BM); row += 4 * WARPS) {
    float four[4][T::BN / 32];
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int j = 0; j < T::BN / 32; ++j)
        four[r][j] = ptx::load1(sums + ((row + r * WARPS) * T::PITCH + lane + 32 * j) * 4);
    float* c = at.c + row * p.c.rs + lane * p.c.cs;
#pragma unroll
    for (int r = 0; r < 4; ++r, c += WARPS * p.c.rs)
#pragma unroll
      for (int j = 0; j < T::BN / 32; ++j)
        if (row + r * WARPS < at.rows && lane + 32 * j < at.cols) scaled.store(c + 32 * j * p.c.cs, four[r][j]);
  }
}

// Adds the groups' parts, in their order, and stores: fours of a row where C is aligned, else neighbouring lanes to
// neighbouring floats.
template <class T>
__device__ __forceinline__ void sum_and_store(const SgemmArgs& p, const Corner& at, bool by16, uint32_t parts, int t) {
  if (by16) {
#pragma unroll 4
    for (int q = t; q < T::BM * T::BN / 4; q += T::THREADS) {
      const int row = q / (T::BN / 4), col = q % (T::BN / 4) * 4;
      const uint32_t from = parts + (row * T::PITCH + col) * 4;
      float4 sum = ptx::load4(from);
#pragma unroll
      for (int g = 1; g < T::K_GROUPS; ++g) sum = add(sum, ptx::load4(from + g * T::SUMS_BYTES));
      put4(p, at.c + row * p.c.rs + col, row < at.rows ? at.cols - col : 0, sum);
    }
    return;
  }
  if constexpr (T::K_GROUPS == 1) {
    if (p.beta == 0.0f) store_rows<T, false>(p, at, parts, t);
    else store_rows<T, true>(p, at, parts, t);
  } else {
#pragma unroll 2
    for (int row = t / 32; row < min(at.rows, T::BM); row += T::THREADS / 32) {
      float* const c = at.c + row * p.c.rs;
#pragma unroll
      for (int col = t % 32; col < T::BN; col += 32) {
        const uint32_t from = parts + (row * T::PITCH + col) * 4;
        float sum = ptx::load1(from);
#pragma unroll
        for (int g = 1; g < T::K_GROUPS; ++g) sum += ptx::load1(from + g * T::SUMS_BYTES);
        if (col < at.cols) epilogue(p).store(c + col * p.c.cs, sum);
      }
    }
  }
}

template <class T, CopyPath A_PATH, CopyPath B_PATH>
__global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
    strict_mixed_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ MixedPlan plan) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int t = threadIdx.x, group = t / T::GROUP_THREADS, warp = t % T::GROUP_THREADS / 32;
  const Lane lane(t % 32);
  const Tile tile = plan.grid.tile(blockIdx.x / plan.splits);
  const unsigned part = blockIdx.x % plan.splits;
  const int64_t first = part * plan.range, at_row = tile.row * T::BM, at_col = tile.col * T::BN;
  const int64_t depth = min(plan.range, p.k - first);
  Corner at = corner(p, tile.batch, at_row, 0);
  at.c += at_col * p.c.cs;
  at.cols = static_cast<int>(min(p.n - at_col, int64_t{T::BN}));
  using Copies = MixedCopies<T, A_PATH, B_PATH>;
  Copies copies{typename Copies::A(plan.a, first_of(plan.a, tile.batch, first, at_row), min(at.rows, T::BM), t),
                typename Copies::B(plan.b, first_of(plan.b, tile.batch, first, at_col), at.cols, t), shared, depth};
  const int row = warp / T::WARPS_N * 8 * T::TM + lane.row * 4, col = warp % T::WARPS_N * 4 * T::TN + lane.col * 4;
  pdl_wait();
  MixedSums<T> sums;
  multiply<T>(sums, copies, shared, depth, group, (group * T::A_LD + row) * 4,
              T::A_BYTES + (group * T::B_LD + col) * 4);
  pdl_launch_next();  // what is left to do takes as long as the next kernel needs to start
  ptx::wait_copies<0>();
  __syncthreads();
  sums.leave(shared + group * T::SUMS_BYTES + (row * T::PITCH + col) * 4, plan.one);
  __syncthreads();
  at.c += part * plan.split_stride;
  sum_and_store<T>(p, at, plan.c_by16, shared, t);
#else
  not_for_this_target();
#endif
}

template <class T, CopyPath A_PATH, CopyPath B_PATH>
void launch(const SgemmArgs& p, const MixedPlan& plan, const Context& ctx) {
  launch_kernel<strict_mixed_kernel<T, A_PATH, B_PATH>>(with_room<T>(plan.grid.blocks() * plan.splits, ctx), ctx, p,
                                                        plan);
}

template <class T, CopyPath A_PATH>
void launch(const SgemmArgs& p, const MixedPlan& plan, const Context& ctx) {
  switch (plan.b.path) {
    case CopyPath::by16: return launch<T, A_PATH, CopyPath::by16>(p, plan, ctx);
    case CopyPath::by4: return launch<T, A_PATH, CopyPath::by4>(p, plan, ctx);
    case CopyPath::transposed: return launch<T, A_PATH, CopyPath::transposed>(p, plan, ctx);
  }
}

template <class T>
void launch(const SgemmArgs& p, const MixedPlan& plan, const Context& ctx) {
  switch (plan.a.path) {
    case CopyPath::by16: return launch<T, CopyPath::by16>(p, plan, ctx);
    case CopyPath::by4: return launch<T, CopyPath::by4>(p, plan, ctx);
    case CopyPath::transposed: return launch<T, CopyPath::transposed>(p, plan, ctx);
  }
}

// 16-byte copies bring whole fours of rows or columns, of which the last ones have to exist.
Operand in_whole_fours(Operand x, int64_t across) {
  if (x.path == CopyPath::by16 && across % 4 != 0) x.path = CopyPath::by4;
  return x;
}

template <MixedTile TILE>
void strict_mixed(const SgemmArgs& call, const Context& ctx) {
  using T = Mixed<TILE>;
  const SgemmArgs p = turned(call, TILE);
  const SplitKPlan split_k = split_k_plan(call, TILE);
  MixedPlan plan{in_whole_fours(operand(p.a, p.a.cs, p.a.rs), p.m),
                 in_whole_fours(operand(p.b, p.b.rs, p.b.cs), p.n),
                 TileGrid(p.m, p.n, p.batch, T::BM, T::BN),
                 1.0f,
                 aligned16(p.c) && p.c.cs == 1,
                 static_cast<unsigned>(split_k.splits)};
  plan.range = mixed_range(p.k, split_k.splits);
  if (split_k.splits == 1) return launch<T>(p, plan, ctx);
  plan.split_stride = p.batch * p.m * split_k.ld;
  plan.c_by16 = true;
  float* sums = static_cast<float*>(ctx.workspace);
  SgemmArgs part = p;
  part.alpha = 1.0f, part.beta = 0.0f, part.c = {sums, split_k.ld, 1, p.m * split_k.ld};
  launch<T>(part, plan, ctx);
  reduce_split_k(p, split_k.splits, sums, split_k.ld, ctx);
}

}  // namespace

void sgemm_strict_64x16m4(const SgemmArgs& p, const Context& ctx) { strict_mixed<strict_64x16m4>(p, ctx); }
void sgemm_strict_64x32m4(const SgemmArgs& p, const Context& ctx) { strict_mixed<strict_64x32m4>(p, ctx); }
void sgemm_strict_64x48m4(const SgemmArgs& p, const Context& ctx) { strict_mixed<strict_64x48m4>(p, ctx); }
void sgemm_strict_64x64m4(const SgemmArgs& p, const Context& ctx) { strict_mixed<strict_64x64m4>(p, ctx); }
void sgemm_strict_96x64m2(const SgemmArgs& p, const Context& ctx) { strict_mixed<strict_96x64m2>(p, ctx); }
void sgemm_strict_64x128m2(const SgemmArgs& p, const Context& ctx) { strict_mixed<strict_64x128m2>(p, ctx); }
void sgemm_strict_64x64m1(const SgemmArgs& p, const Context& ctx) { strict_mixed<strict_64x64m1>(p, ctx); }
void sgemm_strict_64x128m1(const SgemmArgs& p, const Context& ctx) { strict_mixed<strict_64x128m1>(p, ctx); }

}  // namespace fl
