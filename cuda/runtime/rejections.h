// Where kernels say what the host reads at a later call, without waiting for it.
#pragma once

namespace fl::cuda {

// REJECTION_WORDS of them in pinned memory, zero at first, which is never freed; null while there is no room for them.
unsigned* rejection_words();

}  // namespace fl::cuda
