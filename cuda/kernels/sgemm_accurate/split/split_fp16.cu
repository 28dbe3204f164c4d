// The split pass into two fp16 terms.
#include "cuda/kernels/sgemm_accurate/split/launch.cuh"

namespace fl {

template void launch_split<Fp16Terms>(const AccurateProduct&);

}  // namespace fl
