// Where kernels say what the host reads at a later call, without waiting for it.
#pragma once

namespace fl::cuda {

// REJECTION_WORDS of them in pinned memory, zero at first, which is never freed; null if there is none.
unsigned* rejection_words();

}  // namespace fl::cuda
