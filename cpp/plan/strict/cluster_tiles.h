// Tiles whose k is split over the warps of a cluster, a range for each (cluster_split_k.cuh).
#pragma once

#include <initializer_list>

#include "plan/strict/tile_rules.h"

namespace fl {

// Each of k_groups warps of cluster_k blocks multiplies the whole tile over a range of k of its own, through a pipeline
// of its own.
struct ClusterSplitKTile {
  int BM, BN;
  int k_groups = 8, cluster_k;
  int stages = 3, tma_stages = 4;  // of a warp, and where tiles are full and come by TMA

  static constexpr int BK = 16;
  constexpr int TM() const { return BM / 8; }
  constexpr int TN() const { return BN / 4; }
  constexpr int threads() const { return 32 * k_groups; }
  constexpr int ranges() const { return k_groups * cluster_k; }
  constexpr int step() const { return BK * k_groups; }  // of a block
  constexpr int tile_bytes() const { return BM * BN * 4; }

  // Shared memory in bytes: the warps' pipelines, what blocks send each other and its barrier, and with TMA a barrier a
  // stage. A warp's sums take the place of its pipeline.
  constexpr int a_bytes(bool tma) const { return tma ? BM * BK * 4 : padded_bytes(BM, BK); }
  constexpr int b_bytes(bool tma) const { return tma ? BK * BN * 4 : padded_bytes(BK, BN); }
  constexpr int stage_bytes(bool tma) const { return a_bytes(tma) + b_bytes(tma); }
  constexpr int pipeline_bytes(bool tma) const { return (tma ? tma_stages : stages) * stage_bytes(tma); }
  constexpr int inbox(bool tma) const { return k_groups * pipeline_bytes(tma); }
  constexpr int barriers(bool tma) const { return inbox(tma) + tile_bytes() + 16; }
  constexpr int shared_bytes(bool tma) const { return barriers(tma) + (tma ? k_groups * tma_stages * 8 : 0); }

  consteval bool sound() const {
    if (BM % 8 != 0 || BN % 16 != 0) throw "the outputs of all lanes and warps of a group are the block's BM x BN";
    for (const bool tma : {false, true}) {
      // One block to a multiprocessor: with room for two, both blocks of a cluster seem to go to the same one.
      if (2 * shared_bytes(tma) <= BLOCK_SHARED || shared_bytes(tma) > BLOCK_SHARED)
        throw "the blocks meant for a multiprocessor have room there, and no more";
      if (tile_bytes() > pipeline_bytes(tma)) throw "the sums fit in the place of the pipeline";
    }
    if (stage_bytes(true) % 1024 != 0 || a_bytes(true) % 512 != 0)
      throw "TMA is Hopper's, and needs whole swizzles in a stage";
    return true;
  }
  constexpr TileName name() const { return TileName(BM, BN).shared("k", k_groups).shared("c", cluster_k); }
};

inline constexpr ClusterSplitKTile strict_32x32k8c4{.BM = 32, .BN = 32, .cluster_k = 4};
inline constexpr ClusterSplitKTile strict_32x32k8c2{.BM = 32, .BN = 32, .cluster_k = 2};
inline constexpr ClusterSplitKTile strict_48x32k8c4{.BM = 48, .BN = 32, .cluster_k = 4};
inline constexpr ClusterSplitKTile strict_48x48k8c2{.BM = 48, .BN = 48, .cluster_k = 2};

// The tiles that are kernels, by the file that compiles them.
// clang-format off
// sgemm_strict_small.cu
#define FL_CLUSTER_TILES(DO) DO(strict_32x32k8c4) DO(strict_32x32k8c2) DO(strict_48x32k8c4) DO(strict_48x48k8c2)
// clang-format on

}  // namespace fl
