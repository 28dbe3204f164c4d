#include "cuda/kernels/common/launch.cuh"

namespace fl {

static __global__ void __launch_bounds__(1024) clear_saved_kernel(unsigned* saved, unsigned count) {
  pdl_launch_next();
  pdl_wait();
  for (unsigned i = threadIdx.x; i < count; i += 1024) saved[i] = 0;
}

void clear_saved(unsigned* saved, unsigned count, const Context& ctx) {
  launch_kernel<clear_saved_kernel>({1, 1024}, ctx, saved, count);
}

}  // namespace fl
