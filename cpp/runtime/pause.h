// For loops that wait for another thread.
#pragma once

#include <thread>

namespace fl {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Until a condition holds that another thread is about to bring about. That thread may need this one's core.
template <class Condition>
void wait_until(Condition holds) {
  for (int spins = 0; !holds(); ++spins) {
    if (spins < 4000) pause();
    else std::this_thread::yield();
  }
}

}  // namespace fl
