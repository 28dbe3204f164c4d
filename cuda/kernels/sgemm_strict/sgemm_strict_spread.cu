// Strict SGEMM for few tiles and for narrow ones: few warps to a block, several blocks to a multiprocessor, and every
// copy of a step has a place of its own between the FMAs (multistage.cuh). Four of the tiles run on 7.5 too, where the
// copies of a step go through registers together.
//
// Shared memory serves copies and reads of fragments in the order in which they were issued. Where a warp begins all
// copies of a step at once, the fragments of the next line wait behind them, and FMAs for fragments: 64 x 64 tiles took
// 55 to 76 cycles for a k. One or two copies to a line take 40, the bound of 8 x 8 sums a thread. For that the ways of
// the copies are known at compile time: a kernel for each of nine combinations.
//
// Of a product with few rows 64 x 16 tiles compute the transposed one. The tiles without groups are for a short k and
// many outputs: nothing is added up at the end, k is not split, and each output is one chain of FMAs in ascending k.
#include "cuda/kernels/sgemm_strict/multistage.cuh"
#include "cuda/kernels/sgemm_strict/spread_copy.cuh"

namespace fl {
namespace {

template <class T, CopyPath A_PATH, CopyPath B_PATH>
struct SpreadCopies {
  using A = SpreadCopy<T::BK, T::BM, T::THREADS, A_PATH>;
  using B = SpreadCopy<T::BK, T::BN, T::THREADS, B_PATH>;
  static constexpr int COPIES = A::COPIES + B::COPIES;
  A a;
  B b;
  uint32_t into;  // the next stage
  int64_t left;   // k to copy

  __device__ __forceinline__ SpreadCopies(const MultistagePlan& plan, const BlockShare& of, uint32_t shared, int t)
      : a(plan.a, first_of(plan.a, of.batch, of.k, of.row), of.rows, t),
        b(plan.b, first_of(plan.b, of.batch, of.k, of.col), of.cols, t),
        into(shared),
        left(of.depth) {}

  // Between two steps everybody's copies of the next stage arrive, and a barrier says that all have read this one; the
  // fragments of the last line are in registers by then.
  __device__ __forceinline__ void multiply(MultistageSums<T>& sums, const MultistagePlan&, const BlockShare& of,
                                           uint32_t shared, int group, int a_offset, int b_offset) {
    constexpr int A_STEP = MultistageSums<T>::A_STEP, B_STEP = MultistageSums<T>::B_STEP, PARTS = T::LINES - 1;
#pragma unroll 1
    for (int s = 0; s < T::STAGES - 1; ++s) {
      begin();
      part<0, 1>();
      end(shared);
    }
    ptx::wait_copies<T::STAGES - 2>();
    __syncthreads();
    uint32_t stage = shared;
    int64_t to_multiply = of.depth;
    sums.load(0, stage + a_offset, stage + b_offset);
#pragma unroll 1
    for (; to_multiply >= T::BK; to_multiply -= T::BK) {
      begin();
      const uint32_t a_line = stage + a_offset, b_line = stage + b_offset;
      [&]<int... LINE>(std::integer_sequence<int, LINE...>) {
        (sums.line(LINE, a_line + (LINE + 1) * A_STEP, b_line + (LINE + 1) * B_STEP, [&] { part<LINE, PARTS>(); }),
         ...);
      }(std::make_integer_sequence<int, PARTS>());
      end(shared);
      ptx::wait_copies<T::STAGES - 2>();
      __syncthreads();
      stage = next_stage<T>(stage, shared);
      sums.line(T::LINES - 1, stage + a_offset, stage + b_offset, [] {});
    }
    sums.last_lines(stage + a_offset, stage + b_offset, static_cast<int>(to_multiply), group);
  }

 private:
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

template <MultistageTile TILE>
void with_spread_copies(const SgemmArgs& call, const Context& ctx) {
  using T = Multistage<TILE>;
  strict_multistage<TILE>(call, ctx, [&](const SgemmArgs& p, const MultistagePlan& plan) {
    if constexpr (TILE.any_gpu)
      if (ByRegisters<TILE>::wanted(ctx)) return ByRegisters<TILE>::launch(p, plan, ctx);
    by_path(plan.a.path, [&]<CopyPath A_PATH> {
      by_path(plan.b.path,
              [&]<CopyPath B_PATH> { launch_multistage<T, true, SpreadCopies<T, A_PATH, B_PATH>>(p, plan, ctx); });
    });
  });
}

}  // namespace

#define FL_FUNCTION(tile) \
  void sgemm_##tile(const SgemmArgs& p, const Context& ctx) { with_spread_copies<tile>(p, ctx); }
FL_SPREAD_TILES(FL_FUNCTION)
#undef FL_FUNCTION

}  // namespace fl
