#include "runtime/fork.h"

#include <pthread.h>

namespace fl {
namespace {

std::atomic<unsigned> generation{0};

// When the library is loaded, so that no fork is missed. The handler must not wait or allocate: it counts.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1); });

}  // namespace

unsigned fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

}  // namespace fl
