// Tensor maps by the driver (tensor_map.cuh).
#include "cuda/kernels/common/tensor_map.cuh"

#include <cudaTypedefs.h>
#include <cuda_runtime.h>

namespace fl {
namespace {

// The driver's function, or null where it cannot be asked.
PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder() {
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

}  // namespace

bool tensor_map(CUtensorMap& map, const float* data, int64_t rows, int64_t cols, int64_t ld, int box_rows, int box_cols,
                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion) {
  const auto encode = tensor_map_encoder();
  const cuuint64_t extent[2] = {cuuint64_t(cols), cuuint64_t(rows)}, stride[1] = {cuuint64_t(ld) * sizeof(float)};
  const cuuint32_t box[2] = {cuuint32_t(box_cols), cuuint32_t(box_rows)}, step[2] = {1, 1};
  return encode &&
         encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(data), extent, stride, box, step,
                CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace fl
