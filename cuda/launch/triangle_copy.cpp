// A triangle of matrices in device memory, copied on a stream.
#include "core/triangle_copy.h"

#include "cuda/launch/launch_kernel.h"
#include "cuda/runtime/device_guard.h"
#include "device/launches.h"

namespace fl::cuda {

void copy_triangle(const TriangleCopy& copy, int device, void* stream) {
  const DeviceGuard guard(device);
  require_numbered(copy.n, copy.n, copy.batch);
  fl::copy_triangle(copy, context_on(device, stream_of(stream, device)));
  check_launch();
}

}  // namespace fl::cuda
