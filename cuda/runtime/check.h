// Every CUDA call of the host layer goes through FL_CUDA, so that a failure becomes an exception that says what failed.
#pragma once

#include <cuda_runtime_api.h>

namespace fl::cuda {

// Throws OutOfMemory if the device or pinned memory ran out, else CudaError. Clears the thread's last error first: a
// failure that has been reported must not turn up again in the launch check of the next call.
[[noreturn]] void fail(cudaError_t error, const char* call, const char* file, int line);

// For destructors and clean-up after an error, where there is nobody left to tell.
inline void ignore_errors(cudaError_t) noexcept { static_cast<void>(cudaGetLastError()); }

}  // namespace fl::cuda

#define FL_CUDA(call)                                                 \
  do {                                                                \
    if (const cudaError_t fl_error = (call); fl_error != cudaSuccess) \
      ::fl::cuda::fail(fl_error, #call, __FILE__, __LINE__);          \
  } while (0)
