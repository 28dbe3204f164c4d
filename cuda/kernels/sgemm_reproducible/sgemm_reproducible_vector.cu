// precision="reproducible" for one row or one column: n outputs x B, of which each block of k of each output is a chain
// of 256 FMAs. Tiles would be nearly empty; here a lane computes one chain, a warp 32 outputs of a block, and the
// second kernel of add_slabs.cuh adds the blocks in order. One block alone goes to C at once.
//
// Memory bounds it: every element of B is used once. A warp has the next eight steps of 32 k, all of its block, under
// way to shared memory, 32 KiB, and goes on copying across the border to the next 32 chains. Five such warps fill the
// shared memory of a multiprocessor of 9.0. An H200 reads 2.0 to 3.2 TB/s so, in strict products 3.0 to 4.1. x comes by
// such copies, once for a warp and block. With few outputs and many blocks it is the second kernel that takes longest:
// 17 us for one output and k = 200000.
//
// Where B is contiguous along k a stage has a line for each chain, else one for each k, in either case of 32 floats and
// four that no lane reads, so that lanes that read one float or four below one another do not wait for each other.
// Where chains are few a warp has 16 or 8 of them: more multiprocessors take part.
//
// Devices without asynchronous copies have a thread for each chain, which loads 16 k at a time.
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/ptx.cuh"
#include "cuda/kernels/sgemm_reproducible/add_slabs.cuh"
#include "cuda/kernels/sgemm_reproducible/chain_of_a_thread.cuh"
#include "plan/strict/tile_rules.h"

namespace fl {
namespace {

constexpr int BK = 32, STAGES = 8, CHAINS = 32, FEWEST_CHAINS = 8;  // of a warp
constexpr int LINE_BYTES = (BK + 4) * sizeof(float);
constexpr int stage_bytes(int x_lines) { return (CHAINS + x_lines) * LINE_BYTES; }
constexpr int MOST_SHARED_BYTES = STAGES * stage_bytes(CHAINS);
static_assert(MOST_SHARED_BYTES <= SMALLEST_BLOCK_SHARED && BK == CHAINS && STAGES * BK == REPRODUCIBLE_BLOCK);

// Chains are numbered [block][problem][output]. A segment is a block of one problem, whose chains have the same part of
// x. Whole blocks are first; what is left of k at the end is a shorter one.
struct ChainPlan {
  Slabs slabs = {};     // without memory: the sums are results
  int64_t first_k = 0;  // of the first block
  int64_t chains = 0, whole_segments = 0;
  int rest_k = 0;      // of the chains of the others
  int each = CHAINS;   // chains of a warp
  int x_lines = 0;     // segments that a warp has at most
  unsigned tasks = 0;  // of `each` chains
  VectorCopies copies = {};
};

struct Segment {
  int64_t number, block, problem;

  __device__ __forceinline__ Segment(const SgemmArgs& p, int64_t number)
      : number(number), block(number / p.batch), problem(number - block * p.batch) {}

  __device__ __forceinline__ int64_t k(const ChainPlan& plan) const {
    return plan.first_k + block * REPRODUCIBLE_BLOCK;
  }
  __device__ __forceinline__ const float* x(const SgemmArgs& p, const ChainPlan& plan) const {
    return p.a.data + problem * p.a.bs + k(plan) * p.a.cs;
  }
  __device__ __forceinline__ int length(const ChainPlan& plan) const {
    return number < plan.whole_segments ? static_cast<int>(REPRODUCIBLE_BLOCK) : plan.rest_k;
  }
};

struct Chain {
  int64_t number;
  Segment segment;
  int64_t output;

  __device__ __forceinline__ Chain(const SgemmArgs& p, int64_t number)
      : number(number), segment(p, number / p.n), output(number - segment.number * p.n) {}

  __device__ __forceinline__ const float* b(const SgemmArgs& p, const ChainPlan& plan) const {
    return p.b.data + segment.problem * p.b.bs + segment.k(plan) * p.b.rs + output * p.b.cs;
  }
  // Behind the outputs a row of a slab has up to three more floats, which the second kernel reads.
  __device__ __forceinline__ void store_partial(const SgemmArgs& p, const ChainPlan& plan, float sum) const {
    if (plan.slabs.sums) {
      float* const row = plan.slabs.sums + segment.block * plan.slabs.stride + segment.problem * plan.slabs.ld;
      row[output] = sum;
      if (output == p.n - 1)
        for (int64_t i = p.n; i < plan.slabs.ld; ++i) row[i] = 0.0f;
    } else {
      float* const c = p.c.data + segment.problem * p.c.bs + output * p.c.cs;
      const BlockUpdate update(p, true);
      *c = update(sum, update.reads ? *c : 0.0f);
    }
  }
};

// ---------------------------------------------------------------- a thread to a chain
constexpr int CHAIN_THREADS = 128, CHAIN_AT_A_TIME = 16;

__global__ void __launch_bounds__(CHAIN_THREADS)
    chains_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ ChainPlan plan) {
  const int64_t number = int64_t{blockIdx.x} * CHAIN_THREADS + threadIdx.x;
  if (number >= plan.chains) return;
  const Chain at(p, number);
  pdl_wait();
  pdl_launch_next();
  at.store_partial(
      p, plan,
      chain_of_fmas<CHAIN_AT_A_TIME>(at.segment.x(p, plan), p.a.cs, at.b(p, plan), p.b.rs, 0, at.segment.length(plan)));
}

// ---------------------------------------------------------------- a warp to 32 chains, by way of shared memory
// The chains of a task as its lanes see them. Lanes that have none see the last one.
struct Task {
  int chains;
  Chain chain;  // this lane's
  int64_t first_segment;
  int segments;

  __device__ __forceinline__ Task(const SgemmArgs& p, const ChainPlan& plan, unsigned number, int lane)
      : chains(static_cast<int>(min(int64_t{plan.each}, plan.chains - int64_t{number} * plan.each))),
        chain(p, int64_t{number} * plan.each + min(lane, chains - 1)),
        first_segment(__shfl_sync(0xffffffffu, chain.segment.number, 0)),
        segments(static_cast<int>(__shfl_sync(0xffffffffu, chain.segment.number, 31) - first_segment) + 1) {}
};

// What a task reads of an operand, as `count` lines along k: where the line with the lane's number begins, and its k.
// The copies bring BK k to a stage from `first` on, as far as there are so many: lines of the stage are along k too, or
// one for each k.
template <bool ALONG_K>
struct Lines {
  const float* from;
  int count, k;

  __device__ __forceinline__ int k_of(int line) const { return __shfl_sync(0xffffffffu, k, line); }
  __device__ __forceinline__ const float* begin_of(int line) const {
    return reinterpret_cast<const float*>(__shfl_sync(0xffffffffu, reinterpret_cast<unsigned long long>(from), line));
  }
  __device__ __forceinline__ void copy(bool by16, int64_t stride, int first, uint32_t to, int lane) const {
    if constexpr (ALONG_K) by16 ? copy_by16(first, to, lane) : copy_by4(stride, first, to, lane);
    else by16 ? copy_across_by16(stride, first, to, lane) : copy_across_by4(stride, first, to, lane);
  }
  // Eight lanes copy a line, four lines at a time.
  __device__ __forceinline__ void copy_by16(int first, uint32_t to, int lane) const {
    const int col = first + lane % 8 * 4;
#pragma unroll
    for (int i = 0; i < CHAINS; i += 4) {
      if (i >= count) break;
      const int line = i + lane / 8, left = k_of(line) - col;
      const float* const begin = begin_of(line);
      if (line < count && left > 0)
        ptx::copy_async16_filled(to + line * LINE_BYTES + lane % 8 * 16, begin + col, min(left, 4) * 4);
    }
  }
  // All lanes copy a line.
  __device__ __forceinline__ void copy_by4(int64_t stride, int first, uint32_t to, int lane) const {
    const int at = first + lane;
#pragma unroll 8
    for (int line = 0; line < count; ++line) {
      const float* const begin = begin_of(line);
      if (at < k_of(line)) ptx::copy_async4(to + line * LINE_BYTES + lane * 4, begin + at * stride);
    }
  }
  // Eight lanes copy a k of four neighbouring lines each, which are of one segment.
  __device__ __forceinline__ void copy_across_by16(int64_t stride, int first, uint32_t to, int lane) const {
    const int line = lane % 8 * 4, exist = min(count - line, 4), end = k_of(line);
    const float* const begin = begin_of(line);
#pragma unroll
    for (int i = lane / 8; i < BK; i += 4)
      if (exist > 0 && first + i < end)
        ptx::copy_async16_filled(to + i * LINE_BYTES + line * 4, begin + (first + i) * stride, exist * 4);
  }
  // Each lane copies its own line.
  __device__ __forceinline__ void copy_across_by4(int64_t stride, int first, uint32_t to, int lane) const {
#pragma unroll
    for (int i = 0; i < BK; ++i)
      if (lane < count && first + i < k) ptx::copy_async4(to + i * LINE_BYTES + lane * 4, from + (first + i) * stride);
  }
};

// A warp's copies, on their way through its tasks and along k in each.
template <bool ALONG_K>
struct Copies {
  unsigned number, by;
  int k = 0, longest = 0;
  Lines<ALONG_K> b;
  Lines<true> x;

  __device__ __forceinline__ Copies(const SgemmArgs& p, const ChainPlan& plan, int lane)
      : number(blockIdx.x), by(gridDim.x) {
    begin_task(p, plan, lane);
  }
  __device__ __forceinline__ void begin_task(const SgemmArgs& p, const ChainPlan& plan, int lane) {
    if (number >= plan.tasks) return;
    const Task task(p, plan, number, lane);
    const Segment segment(p, task.first_segment + min(lane, task.segments - 1));
    b = {task.chain.b(p, plan), task.chains, task.chain.segment.length(plan)};
    x = {segment.x(p, plan), task.segments, segment.length(plan)};
    k = 0, longest = x.k_of(0);  // no chain of the task has more than the first one
  }
  // Behind the last task an empty group keeps the count of groups right.
  __device__ __forceinline__ void next(const SgemmArgs& p, const ChainPlan& plan, uint32_t stage, int lane) {
    if (number < plan.tasks) {
      b.copy(plan.copies.b_by16, p.b.rs, k, stage, lane);
      x.copy(plan.copies.x_by16, p.a.cs, k, stage + CHAINS * LINE_BYTES, lane);
      k += BK;
      if (k >= longest) number += by, begin_task(p, plan, lane);
    }
    ptx::commit_copies();
  }
};

// fma(x[k], b[k], sum) in ascending k, for `count` of a stage. What there is none of is not multiplied by zeros: +0
// would take the sign off a sum of -0.
template <bool ALONG_K>
__device__ __forceinline__ float add_stage(float sum, uint32_t b, uint32_t x, int count) {
  constexpr int NEXT = ALONG_K ? 4 : LINE_BYTES;
  if (count < BK) {
    for (int k = 0; k < count; ++k) sum = fmaf(ptx::load1(x + k * 4), ptx::load1(b + k * NEXT), sum);
    return sum;
  }
  float4 x_frag[BK / 4];
  float b_frag[BK];
#pragma unroll
  for (int k = 0; k < BK; k += 4) {
    x_frag[k / 4] = ptx::load4(x + k * 4);
    const float4 four = ALONG_K ? ptx::load4(b + k * NEXT) : float4{};
#pragma unroll
    for (int j = 0; j < 4; ++j) b_frag[k + j] = ALONG_K ? component(four, j) : ptx::load1(b + (k + j) * NEXT);
  }
#pragma unroll
  for (int k = 0; k < BK; ++k) sum = fmaf(component(x_frag[k / 4], k % 4), b_frag[k], sum);
  return sum;
}

// Blocks of one warp, as many as there is shared memory for, or tasks.
template <bool ALONG_K>
__global__ void __launch_bounds__(32)
    staged_chains_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ ChainPlan plan) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  const int lane = threadIdx.x, stage_size = stage_bytes(plan.x_lines);
  const uint32_t stages = ptx::shared_address(memory), end = stages + STAGES * stage_size;
  uint32_t into = stages, from = stages;
  auto pass = [&](uint32_t& stage) { stage = stage + stage_size == end ? stages : stage + stage_size; };
  Copies<ALONG_K> copies(p, plan, lane);
  pdl_wait();
  pdl_launch_next();
#pragma unroll 1
  for (int s = 0; s < STAGES - 1; ++s) copies.next(p, plan, into, lane), pass(into);
#pragma unroll 1
  for (unsigned number = blockIdx.x; number < plan.tasks; number += gridDim.x) {
    const Task task(p, plan, number, lane);
    const int k_of_chain = task.chain.segment.length(plan), longest = __shfl_sync(0xffffffffu, k_of_chain, 0);
    const int x_line = CHAINS + static_cast<int>(task.chain.segment.number - task.first_segment);
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < longest; k += BK) {
      __syncwarp();  // all lanes have read the stage that is filled next
      copies.next(p, plan, into, lane), pass(into);
      ptx::wait_copies<STAGES - 1>();
      __syncwarp();  // all lanes' copies have arrived
      sum = add_stage<ALONG_K>(sum, from + lane * (ALONG_K ? LINE_BYTES : 4), from + x_line * LINE_BYTES,
                               min(k_of_chain - k, BK));
      pass(from);
    }
    if (lane < task.chains) task.chain.store_partial(p, plan, sum);
  }
  ptx::wait_copies<0>();
#else
  not_for_this_target();
#endif
}

// ---------------------------------------------------------------- launches
// `blocks` of k from `first` on, at most, with slabs or without.
ChainPlan chain_plan(const SgemmArgs& p, int64_t first, int64_t blocks, const Slabs& slabs, int sm_count) {
  const int64_t first_k = first * REPRODUCIBLE_BLOCK, k = std::min(p.k - first_k, blocks * REPRODUCIBLE_BLOCK);
  ChainPlan plan{.slabs = slabs, .first_k = first_k, .chains = std::max<int64_t>(blocks, 1) * p.batch * p.n};
  plan.whole_segments = k / REPRODUCIBLE_BLOCK * p.batch;
  plan.rest_k = static_cast<int>(k % REPRODUCIBLE_BLOCK);
  while (plan.each > FEWEST_CHAINS && ceil_div(plan.chains, plan.each / 2) <= sm_count) plan.each /= 2;
  plan.tasks = static_cast<unsigned>(ceil_div(plan.chains, int64_t{plan.each}));
  const int64_t segments = plan.chains / p.n;
  plan.x_lines = static_cast<int>(std::min<int64_t>((plan.each - 2) / p.n + 2, segments));
  plan.copies = vector_copies(p, segments);
  return plan;
}

template <bool ALONG_K>
void launch_staged(const SgemmArgs& p, const ChainPlan& plan, const Context& ctx) {
  const int shared = STAGES * stage_bytes(plan.x_lines);
  const int64_t fitting = int64_t(ctx.device->shared_per_sm) / (shared + SYSTEM_SHARED);
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(plan.tasks, fitting * ctx.sm_count));
  launch_kernel<staged_chains_kernel<ALONG_K>>({blocks, 32, shared, 1, MOST_SHARED_BYTES}, ctx, p, plan);
}

void launch_chains(const SgemmArgs& p, const ChainPlan& plan, const Context& ctx) {
  if (p.k == 0 || !ctx.device->has(feature_cp_async))
    return launch_kernel<chains_kernel>(
        {static_cast<unsigned>(ceil_div(plan.chains, int64_t{CHAIN_THREADS})), CHAIN_THREADS}, ctx, p, plan);
  plan.copies.along_k ? launch_staged<true>(p, plan, ctx) : launch_staged<false>(p, plan, ctx);
}

void row_in_blocks(const SgemmArgs& row, const Context& ctx) {
  if (row.k <= REPRODUCIBLE_BLOCK)
    return launch_chains(with_empty_sum(row), chain_plan(row, 0, blocks_of_k(row), {}, ctx.sm_count), ctx);
  for_each_group(row, vector_slab_plan(row), ctx, [&](const SgemmArgs& p, int64_t first, const Slabs& slabs) {
    launch_chains(p, chain_plan(p, first, slabs.count, slabs, ctx.sm_count), ctx);
  });
}

}  // namespace

// Of several rows and columns, which dispatch leaves to tiles, one column after the other.
void sgemm_reproducible_vector(const SgemmArgs& p, const Context& ctx) {
  const int64_t rows = p.m == 1 ? 1 : p.n;
  for (int64_t i = 0; i < rows; ++i) row_in_blocks(as_row(p, i), ctx);
}

}  // namespace fl
