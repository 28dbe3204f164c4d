// A call on operands in host memory that do not fit on the device: tile by tile, through the pipeline.
#pragma once

#include <cuda_runtime_api.h>

#include "transfer/tile_plan.h"

namespace fl::cuda {

// As run_pipeline(), for a plan that has tiles. `row_for` chooses the rows of their steps.
template <class Args>
void run_tiles(const TilePlan<Args>& plan, const RowFor<Args>& row_for, const Args& host, int device,
               cudaStream_t stream);

}  // namespace fl::cuda
