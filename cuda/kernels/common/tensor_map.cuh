// Boxes of a matrix by the bulk copy engine: the map that describes the matrix to it, made on the host without a call
// of the driver's that could fail later.
#pragma once

#include <cudaTypedefs.h>

#include <cstdint>

#include "cuda/kernels/common/ptx_barriers.cuh"

namespace fl {

// The driver's function, or null where it cannot be asked.
inline PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder() {
  static const auto encoder = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (error == cudaSuccess) return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
    static_cast<void>(cudaGetLastError());  // the answer, not an error of the call
    return PFN_cuTensorMapEncodeTiled_v12000{};
  }();
  return encoder;
}

// The map of a row-major matrix whose boxes have box_rows x box_cols floats; false if there can be none.
inline bool tensor_map(CUtensorMap& map, const float* data, int64_t rows, int64_t cols, int64_t ld, int box_rows,
                       int box_cols, CUtensorMapSwizzle swizzle,
                       CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B) {
  const auto encode = tensor_map_encoder();
  const cuuint64_t extent[2] = {cuuint64_t(cols), cuuint64_t(rows)}, stride[1] = {cuuint64_t(ld) * sizeof(float)};
  const cuuint32_t box[2] = {cuuint32_t(box_cols), cuuint32_t(box_rows)}, step[2] = {1, 1};
  return encode &&
         encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(data), extent, stride, box, step,
                CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

namespace ptx {
// The bytes that a barrier's phase waits for besides its arrivals.
__device__ __forceinline__ void barrier_expect_more(uint32_t barrier, uint32_t bytes) {  // mbarrier.expect_tx
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void load_box(uint32_t to, const CUtensorMap* map, int col, int row, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(map), "r"(col), "r"(row), "r"(barrier)
      : "memory");
}
__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {  // prefetch.tensormap
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
}  // namespace ptx

}  // namespace fl
