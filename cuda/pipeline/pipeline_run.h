// What the calls on host memory have in common that go through the pipeline: rings, streams, threads, and the drive.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "cuda/pipeline/panel_driver.h"
#include "cuda/runtime/ring.h"
#include "cuda/runtime/streams.h"

namespace fl::cuda {

struct RingSizes {
  std::size_t in_slot, out_slot;  // bytes
  int in_blocks, out_blocks;
};

class PipelineRun {
 public:
  // For a call that copies so many bytes. Its products run on `stream`. Throws OutOfMemory without pinned memory.
  PipelineRun(int device, cudaStream_t stream, std::size_t in_bytes, std::size_t out_bytes);

  CopySizes sizes() const {
    return {int64_t(sizes_.in_slot / sizeof(float)), int64_t(sizes_.out_slot / sizeof(float))};
  }
  // Returns when the result is in place. `output` is the whole result of the call.
  template <class Args>
  void carry_out(const std::vector<DeviceStep<Args>>& steps, const PanelCopies& copies, void* workspace,
                 const Lines<float>& output) const;

 private:
  int device_;
  std::size_t bytes_;
  RingSizes sizes_;
  StreamLease in_, out_;
  cudaStream_t stream_;
  PinnedBlocks blocks_;
};

}  // namespace fl::cuda
