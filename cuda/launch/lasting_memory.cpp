#include "cuda/launch/lasting_memory.h"

#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/streams.h"
#include "device/device_info.h"

namespace fl::cuda {

LastingMemory::LastingMemory(int device, std::size_t bytes) : device_(device), bytes_(bytes) {
  if (bytes == 0) return;
  const DeviceGuard guard(device);
  const AllowDuringCapture allow;
  const cudaStream_t stream = library_stream(device);
  data_ = pool_allocate(device, bytes, stream);
  cudaError_t error = cudaEventCreateWithFlags(&last_use_, cudaEventDisableTiming);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);  // the memory may be used on any stream from now on
  if (error == cudaSuccess) return;
  if (last_use_) ignore_errors(cudaEventDestroy(last_use_));
  pool_free(device, data_, bytes, stream);
  fail(error, "making memory that stays", __FILE__, __LINE__);
}

LastingMemory::~LastingMemory() {
  if (!data_ || device_count() == 0) return;  // a child of fork cannot even free it
  const DeviceGuard guard(device_, std::nothrow);
  const AllowDuringCapture allow;
  const cudaStream_t stream = library_stream(device_);
  ignore_errors(cudaStreamWaitEvent(stream, last_use_, 0));
  pool_free(device_, data_, bytes_, stream);
  ignore_errors(cudaEventDestroy(last_use_));
}

}  // namespace fl::cuda
