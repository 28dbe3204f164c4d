#include "cuda/runtime/rejections.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "core/context.h"
#include "cuda/runtime/streams.h"

namespace fl::cuda {

unsigned* rejection_words() {
  static unsigned* const words = []() -> unsigned* {
    const AllowDuringCapture allow;
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, REJECTION_WORDS * sizeof(unsigned), cudaHostAllocPortable) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return nullptr;
    }
    return static_cast<unsigned*>(std::memset(memory, 0, REJECTION_WORDS * sizeof(unsigned)));
  }();
  return words;
}

}  // namespace fl::cuda
