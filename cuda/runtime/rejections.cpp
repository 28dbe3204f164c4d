#include "cuda/runtime/rejections.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstring>

#include "core/context.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/streams.h"

namespace fl::cuda {

unsigned* rejection_words() {
  static std::atomic<unsigned*> words{nullptr};
  if (unsigned* const made = words.load(std::memory_order_acquire)) return made;
  const AllowDuringCapture allow;
  void* memory = nullptr;
  const cudaError_t error = cudaHostAlloc(&memory, REJECTION_WORDS * sizeof(unsigned), cudaHostAllocPortable);
  if (error != cudaSuccess) return ignore_errors(error), nullptr;
  auto* const own = static_cast<unsigned*>(std::memset(memory, 0, REJECTION_WORDS * sizeof(unsigned)));
  unsigned* made = nullptr;
  if (words.compare_exchange_strong(made, own)) return own;
  ignore_errors(cudaFreeHost(own));
  return made;
}

}  // namespace fl::cuda
