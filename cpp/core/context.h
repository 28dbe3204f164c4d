// What a running kernel may use.
#pragma once

#include <cstdint>

#include "core/device_spec.h"

namespace fl {

struct LaunchGroup;        // core/launch_group.h
struct PrepackedOperands;  // plan/prepacked_operand.h

// Who waits for a call (runtime/call_watch.h). A CPU kernel asks between blocks of some milliseconds whether to go on,
// and says how many steps its thread has done since: if not it returns, whatever is missing.
struct Watch {
  bool (*goes_on)(Watch&, int64_t steps, int slot);
};

constexpr int REJECTION_WORDS = 4096;

// What a running kernel may use. A kernel never allocates, throws, reads the environment or picks a device.
struct Context {
  void* workspace = nullptr;                     // at least Kernel::workspace(args) bytes, 256-byte aligned
  int threads = 1;                               // CPU rows: how many threads the call may use
  void* stream = nullptr;                        // GPU rows: the cudaStream_t to launch on
  int sm_count = 0;                              // GPU rows: multiprocessors of the current device
  const DeviceSpec* device = nullptr;            // GPU rows: the current device
  const PrepackedOperands* prepacked = nullptr;  // rows that split their operands: what is kept of that
  Watch* watch = nullptr;                        // CPU rows: null if nobody waits
  bool repeated = false;                         // GPU rows: a plan's, which runs on the same operands again and again
  unsigned* rejections = nullptr;  // GPU rows: REJECTION_WORDS words of the host for products by two terms, or null
  LaunchGroup* group = nullptr;    // rows with Traits::grouped: the launch is left there
};

}  // namespace fl
