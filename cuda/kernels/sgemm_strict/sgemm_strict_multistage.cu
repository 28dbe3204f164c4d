// Strict SGEMM of few outputs or a short k, by blocks of eight warps whose copies of a step come together
// (multistage.cuh; tiles: plan/strict/multistage_tiles.h).
//
// Interleaved tiles are for 10^4 to 10^6 outputs with k from 10 to 400, products that are over in a few microseconds:
// with three stages and two plain barriers there is little to start and little to end, which is what counts there. Of
// the lines of a step group g of G takes g, g + G, ...: so short steps, and the last one, are shared evenly as well.
//
// Copies are asynchronous where the device has that; else, for 7.5, the loads of a step wait in registers while the one
// before it is multiplied, and groups' sums are added in two halves, for which 64 KiB have room.
//
// In slices each warp multiplies the whole tile over neighbouring lines of a step. A lies with k contiguous, so that
// rows of C-order operands arrive by 16 bytes. What bounds it: copies and the reads of fragments share one pipe to
// shared memory, and warps that wait to begin a copy do not multiply. A k of 64 x 32 takes 31 cycles, of which FMAs are
// 16.
#include "cuda/kernels/sgemm_strict/multistage.cuh"

namespace fl {
namespace {

// Of a group other blocks come to all multiprocessors.
template <class T, class Copies>
void launch_whole_k(const SgemmArgs& p, const MultistagePlan& plan, const Context& ctx) {
  const unsigned blocks = plan.grid.blocks();
  LaunchShape shape{blocks, T::THREADS, T::SHARED_BYTES};
  if constexpr (T::ASYNC) shape = with_room<T>(blocks, ctx);
  if (ctx.group) shape.shared_bytes = T::SHARED_BYTES;
  launch_or_keep<strict_multistage_kernel<T, false, Copies>, strict_multistage_group_kernel<T, Copies>>(shape, ctx, p,
                                                                                                        plan);
}

template <class T>
void interleaved(const SgemmArgs& p, const MultistagePlan& plan, const Context& ctx) {
  if (plan.splits > 1) launch_multistage<T, true, TogetherCopies<T>>(p, plan, ctx);
  else launch_whole_k<T, TogetherCopies<T>>(p, plan, ctx);
}

template <MultistageTile TILE>
void interleaved(const SgemmArgs& call, const Context& ctx) {
  strict_multistage<TILE>(call, ctx, [&](const SgemmArgs& p, const MultistagePlan& plan) {
    if (ByRegisters<TILE>::wanted(ctx)) interleaved<typename ByRegisters<TILE>::T>(p, plan, ctx);
    else interleaved<Multistage<TILE>>(p, plan, ctx);
  });
}

template <MultistageTile TILE>
void in_slices(const SgemmArgs& call, const Context& ctx) {
  using Async = Multistage<TILE>;
  strict_multistage<TILE>(call, ctx, [&](const SgemmArgs& p, const MultistagePlan& plan) {
    if (ByRegisters<TILE>::wanted(ctx)) ByRegisters<TILE>::launch(p, plan, ctx);
    else launch_multistage<Async, true, TogetherCopies<Async>>(p, plan, ctx);
  });
}

}  // namespace

#define FL_FUNCTION(tile) \
  void sgemm_##tile(const SgemmArgs& p, const Context& ctx) { interleaved<tile>(p, ctx); }
FL_INTERLEAVED_TILES(FL_FUNCTION)
#undef FL_FUNCTION

#define FL_FUNCTION(tile) \
  void sgemm_##tile(const SgemmArgs& p, const Context& ctx) { in_slices<tile>(p, ctx); }
FL_SLICE_TILES(FL_FUNCTION)
#undef FL_FUNCTION

}  // namespace fl
