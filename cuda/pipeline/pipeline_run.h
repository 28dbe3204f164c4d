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

// The rings and streams of a call on one device.
class PipelineRun {
 public:
  // For what a device copies of a call on so many devices. Its products run on `stream`. Throws OutOfMemory without
  // pinned memory. The device is current.
  PipelineRun(int device, cudaStream_t stream, std::size_t in_bytes, std::size_t out_bytes, std::size_t devices);

  int device() const { return device_; }
  CopySizes sizes() const;
  int threads() const;  // that it could use for its copies
  Ring in_ring() const { return Ring(blocks_, 0, sizes_.in_blocks, sizes_.in_slot); }
  Ring out_ring() const { return Ring(blocks_, sizes_.in_blocks, sizes_.out_blocks, sizes_.out_slot); }
  PanelStreams streams() const { return {in_.get(), stream_, out_.get()}; }

 private:
  int device_;
  std::size_t bytes_;
  RingSizes sizes_;
  StreamLease in_, out_;
  cudaStream_t stream_;
  PinnedBlocks blocks_;
};

template <class Args>
struct DevicePart {
  const PipelineRun& run;
  const DeviceWork<Args>& work;
};

// Carries out a call, of which each device does a part. Returns when the result is in place. `output` is the whole
// result of the call.
template <class Args>
void carry_out(const std::vector<DevicePart<Args>>& parts, const Lines<float>& output);

}  // namespace fl::cuda
