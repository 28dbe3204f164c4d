// Whole operands between host and device.
#pragma once

#include "pack.h"
#include "staging.h"

namespace fl::cuda {

// Both are asynchronous on `stream`. After upload() the host memory may still be read, if it is pinned, until the
// stream has come past the copy. After download() the result is in place once the stream has been synchronised.
void upload(const Lines<const float>& host, float* device, StagingRing& ring, cudaStream_t stream);
void download(const float* device, const Lines<float>& host, StagingRing& ring, cudaStream_t stream);

// Whether download() copies the padding between the lines along with them, which must then have been written.
bool download_reads_padding(const Lines<float>& host);

}  // namespace fl::cuda
