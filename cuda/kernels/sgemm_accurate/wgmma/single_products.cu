// The kernels of single tiles, of which fp16x2 and bf16x6 choose, and of split-K.
#include "cuda/kernels/sgemm_accurate/wgmma/products.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/single_tile_product.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/split_k_product.cuh"

namespace fl {

template bool launch_single<fp16x2_single_128x64>(const AccurateProduct&);
template bool launch_single<fp16x2_single_128x64.leaving_out(1)>(const AccurateProduct&);
template bool launch_single<fp16x2_single_128x64.leaving_out(2)>(const AccurateProduct&);
template bool launch_single<fp16x2_single_64x96>(const AccurateProduct&);
template bool launch_single<fp16x2_single_64x96.leaving_out(1)>(const AccurateProduct&);
template bool launch_single<fp16x2_single_64x96.leaving_out(2)>(const AccurateProduct&);
template bool launch_single<fp16x2_single_64x64>(const AccurateProduct&);
template bool launch_single<fp16x2_single_64x64.leaving_out(1)>(const AccurateProduct&);
template bool launch_single<fp16x2_single_64x64.leaving_out(2)>(const AccurateProduct&);
template bool launch_single<fp16x2_single_64x64c2>(const AccurateProduct&);
template bool launch_single<fp16x2_single_64x64c2.leaving_out(1)>(const AccurateProduct&);
template bool launch_single<fp16x2_single_64x64c2.leaving_out(2)>(const AccurateProduct&);
template bool launch_single<bf16x6_single_128x64>(const AccurateProduct&);
template bool launch_single<bf16x6_single_64x64>(const AccurateProduct&);
template bool launch_single<bf16x6_single_64x64c2>(const AccurateProduct&);
template bool launch_single<bf16x6_single_192x64c2>(const AccurateProduct&);
template void launch_split_k<fp16x2_split_k>(const AccurateProduct&, const AccurateSplitK&);
template void launch_split_k<bf16x6_split_k>(const AccurateProduct&, const AccurateSplitK&);

}  // namespace fl
