// SGEMV on contiguous columns with few outputs and many columns: a cluster of blocks shares a tile of the outputs, and
// its first block adds up what the others write into its shared memory. One launch, no workspace.
//
// A block to a tile is too little there: 16384 columns of 32 outputs are four tiles of one sector, and four
// multiprocessors take 11 us to read 2 MB. Clusters of 8 and 16 put 32 to 64 of them to work. On large squares pairs of
// blocks fill the device in one wave, and are 2 % faster than a cut through the workspace (sgemv_split_columns.cu).
//
// 32-byte sectors: reads 100 % if the columns start on a sector. Bound: latency, of one load (everything that a thread
// reads is in flight at once), a barrier and the way to another block's shared memory and back.
#include "cuda/kernels/common/grouped.cuh"
#include "cuda/kernels/sgemv/column_tiles.cuh"
#include "cuda/kernels/sgemv/gemv_other_order.cuh"
#include "plan/gemv_cuda_plan.h"

namespace fl {
namespace {

constexpr int MAX_CLUSTER = 16;

// Not among the code for other architectures, where the row is not available.
template <int V, int LC, int THREADS, bool RESIDENT, class T>
__device__ __forceinline__ void cluster_columns_of_block(const SgemvArgs& p, const ClusterGrid& grid, unsigned block,
                                                         float fraction) {
#if __CUDA_ARCH__ >= 900
  const unsigned cluster = grid.cluster;
  using S = ColumnTile<V, LC, THREADS>;
  __shared__ float sums[MAX_CLUSTER][S::OUTPUTS];
  ptx::cluster_arrive_relaxed();
  pdl_wait();
  const unsigned rank = block % cluster;
  const RowBlock at = grid.rows.block(p, block / cluster);
  constexpr int U = columns::in_flight<V> * (V > 1 ? sizeof(float) / sizeof(T) : 1);  // as many bytes in any type
  float acc[V] = {};
  read_tile<T, V, LC, U>(acc, p, at, rank * S::GROUPS, cluster * S::GROUPS, p.n, MatrixLoad<RESIDENT>(fraction));
  if constexpr (LC < 32) pdl_launch_next();
  ptx::cluster_wait();  // the first block has begun
  const uint32_t mine = ptx::address_in(0, ptx::shared_address(sums[rank]));
  sum_tile<V, LC, THREADS>(acc, [&](unsigned c, float sum) { ptx::store_cluster(mine + 4 * c, sum); });
  ptx::cluster_arrive();
  ptx::cluster_wait();
  if (rank != 0) return;
  for (unsigned c = threadIdx.x; c < S::OUTPUTS && at.row + c < p.m; c += THREADS) {
    float sum = 0.0f;
#pragma unroll
    for (unsigned r = 0; r < MAX_CLUSTER; ++r) sum += r < cluster ? sums[r][c] : 0.0f;
    store(p, at.y, at.row + c, sum);
  }
#else
  not_for_this_target();
#endif
}

template <int V, int LC, int THREADS, bool RESIDENT, class T>
__global__ void __launch_bounds__(THREADS, most_columns_blocks<THREADS>)
    cluster_columns_kernel(SgemvArgs p, ClusterGrid grid, float fraction) {
  cluster_columns_of_block<V, LC, THREADS, RESIDENT, T>(p, grid, blockIdx.x, fraction);
}

// Whether the device finds room for clusters of 16, which need a processing cluster of that size: a part of a divided
// GPU may have none.
template <auto KERNEL>
bool large_clusters_fit(int threads) {
  static constinit DeviceAnswers known;
  return large_clusters_fit(launched<KERNEL>(), {.blocks = MAX_CLUSTER, .threads = threads, .cluster = MAX_CLUSTER},
                            known);
}

// As many blocks to a tile as fill the device, but none without a full set of loads for each of its threads. Clusters
// of 16 need a whole processing cluster of the device each: more than seven wait for one another. The size of a cluster
// decides the order of a sum: bits may differ between devices with other numbers of multiprocessors, and a part of one.
template <int V, int LC, int THREADS, class T, bool RESIDENT = false>
void launch_cluster(const SgemvArgs& p, const Context& ctx, float fraction = 0.0f) {
  const RowGrid grid(p, V * LC);
  const bool large =
      grid.blocks() <= 7 && large_clusters_fit<cluster_columns_kernel<V, LC, THREADS, RESIDENT, T>>(THREADS);
  const int most = large ? MAX_CLUSTER : 8;
  constexpr int STEP = THREADS / LC * columns::in_flight<V>;
  int cluster = 1;
  while (cluster < most && int64_t(grid.blocks()) * cluster * THREADS < 768 * int64_t(ctx.sm_count) &&
         int64_t(STEP) * cluster < p.n)
    cluster *= 2;
  const LaunchShape shape{.blocks = grid.blocks() * cluster, .threads = THREADS, .cluster = cluster};
  const ClusterGrid clusters{grid, unsigned(cluster)};
  if constexpr (std::is_same_v<T, float>) {
    constexpr auto body = cluster_columns_of_block<V, LC, THREADS, false, T>;
    if (keep<group_kernel<body, THREADS, most_columns_blocks<THREADS>, ClusterGrid, SgemvArgs, 0>>(shape, ctx, p,
                                                                                                   clusters))
      return;
  }
  launch_kernel<cluster_columns_kernel<V, LC, THREADS, RESIDENT, T>>(shape, ctx, p, clusters, fraction);
}
template <int V, int LC, int THREADS>
void launch_clusters(const SgemvArgs& p, const Context& ctx) {
  with_type(p.stored[0], [&](auto number) { launch_cluster<V, LC, THREADS, decltype(number)>(p, ctx); });
}

// The widest tiles of which clusters still fill the device.
void launch_vectors(const SgemvArgs& p, const Context& ctx) {
  const auto tiles = [&](int outputs) { return ceil_div(p.m, outputs) * p.batch; };
  const float fraction = l2_resident_fraction(p, ctx);
  if (tiles(128) >= 32 && fraction > 0.0f) return launch_cluster<4, 32, 512, float, true>(p, ctx, fraction);
  if (tiles(128) >= 32) return launch_clusters<4, 32, 512>(p, ctx);
  if (tiles(32) >= 3) return launch_clusters<4, 8, 512>(p, ctx);
  launch_clusters<4, 2, 512>(p, ctx);
}

}  // namespace

void sgemv_cluster_columns(const SgemvArgs& p, const Context& ctx) {
  if (p.a.cs == 1) return sgemv_long_rows(p, ctx);
  if (aligned16(p.a)) return launch_vectors(p, ctx);
  if (ceil_div(p.m, 32) * p.batch >= 16) return launch_clusters<1, 32, 512>(p, ctx);
  launch_clusters<1, 8, 512>(p, ctx);
}

}  // namespace fl
