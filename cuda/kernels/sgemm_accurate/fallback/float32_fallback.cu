// The float32 fallback as kernels of its own: of a whole call, and over the parts of k of split-K, so that one
// reduction serves the sums of either.
#include "cuda/kernels/sgemm_accurate/fallback/fallback_tile.cuh"
#include "cuda/kernels/sgemm_accurate/product.cuh"

namespace fl {

namespace {

// Persistent: thousands of blocks that only look at the status take 10 us.
template <class Sums, bool HALVES>
__global__ void __launch_bounds__(FALLBACK_THREADS, Sums::RESIDENT)
    float32_fallback_kernel(const __grid_constant__ SgemmArgs p, TileGrid grid, const unsigned* status) {
  extern __shared__ char fallback_memory[];
  pdl_wait();
  if (status && !(*status & STATUS_REJECTED)) return;
  for (unsigned tile = blockIdx.x; tile < grid.total; tile += gridDim.x)
    fallback_tile<Sums, HALVES>(p, block_tile<FALLBACK_BM, FALLBACK_BM>(p, grid, tile),
                                *reinterpret_cast<FallbackTiles*>(fallback_memory));
}

__global__ void __launch_bounds__(FALLBACK_THREADS, SharedSums::RESIDENT)
    split_k_fallback_kernel(const __grid_constant__ SgemmArgs p, TileGrid grid, const unsigned* status, SplitKSums to) {
  extern __shared__ char fallback_memory[];
  pdl_wait();
  if (!(*status & STATUS_REJECTED)) return;
  for (unsigned unit = blockIdx.x; unit < grid.total * to.parts; unit += gridDim.x)
    fall_back_in_part(p, grid, to, unit, fallback_memory);
}

}  // namespace

void launch_float32_fallback(const SgemmArgs& p, const unsigned* status, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, FALLBACK_BM, FALLBACK_BM);
  const auto launch = [&]<class Sums, bool HALVES>(std::type_identity<Sums>, std::bool_constant<HALVES>) {
    const unsigned full = Sums::RESIDENT * static_cast<unsigned>(ctx.sm_count),
                   blocks = grid.blocks() < full ? grid.blocks() : full;
    const LaunchShape shape{blocks, FALLBACK_THREADS, int(sizeof(FallbackTiles)) + Sums::BYTES};
    launch_kernel<float32_fallback_kernel<Sums, HALVES>>(shape, ctx, p, grid, status);
  };
  if (any_in_16_bits(p.stored)) launch(std::type_identity<RegisterSums>{}, std::true_type{});
  else if (ctx.device->shared_per_block >= FALLBACK_SHARED) launch(std::type_identity<SharedSums>{}, std::false_type{});
  else launch(std::type_identity<RegisterSums>{}, std::false_type{});
}

void launch_split_k_fallback(const SgemmArgs& p, const unsigned* status, const SplitKSums& to, const Context& ctx) {
  const TileGrid grid(p.m, p.n, 1, FALLBACK_BM, FALLBACK_BM);
  const unsigned full = 2 * static_cast<unsigned>(ctx.sm_count), units = grid.blocks() * unsigned(to.parts);
  launch_kernel<split_k_fallback_kernel>({units < full ? units : full, FALLBACK_THREADS, FALLBACK_SHARED}, ctx, p, grid,
                                         status, to);
}

}  // namespace fl
