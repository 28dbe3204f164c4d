// The split pass into three bf16 terms.
#include "cuda/kernels/sgemm_accurate/split/launch.cuh"

namespace fl {

template void launch_split<Bf16Terms>(const AccurateProduct&);

}  // namespace fl
