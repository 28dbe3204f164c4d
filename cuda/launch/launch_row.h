// The launch of one row of the kernel table, with its errors.
#pragma once

#include <cuda_runtime_api.h>

#include <climits>
#include <string>

#include "core/errors.h"
#include "cuda/runtime/check.h"
#include "device/device.h"

namespace fl::cuda {

// A kernel numbers its blocks in one launch dimension of 2^31 - 1. With no tile smaller than 8 x 8 only a batch of
// thousands of millions of tiny problems passes that.
inline double blocks(const SgemmArgs& p) {
  return double(ceil_div(p.m, 8)) * double(ceil_div(p.n, 8)) * double(p.batch);
}
inline double blocks(const SgemvArgs& p) { return double(ceil_div(p.m, 8)) * double(p.batch); }
inline double blocks(const TransposeArgs& p) {
  return double(ceil_div(p.m, 8)) * double(ceil_div(p.n, 8)) * double(p.batch);
}

template <class Args>
void launch_row(const Kernel<Args>& kernel, const Args& args, int device, void* workspace, cudaStream_t stream,
                const KeptSplits* splits = nullptr, bool repeated = false) {
  if (blocks(args) > INT_MAX)
    throw InvalidValue("a batch of " + std::to_string(args.batch) +
                       " problems is too large for one call on a CUDA device");
  const int sm_count = device_info(device).sm_count;
  kernel.run(
      args,
      Context{.workspace = workspace, .stream = stream, .sm_count = sm_count, .splits = splits, .repeated = repeated});
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) fail(error, "the launch", __FILE__, __LINE__);
}

}  // namespace fl::cuda
