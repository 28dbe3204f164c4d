// State that exists once per device: a pool, streams, pinned chunks.
#pragma once

#include "device/device_info.h"

namespace fl::cuda {

// Call only after require_device(device). Never freed: at the end of the process the driver may be gone before the
// destructors of this library run, and destroying CUDA objects would then crash.
template <class State>
State& per_device(int device) {
  static State* const states = new State[std::size_t(device_count())];
  return states[device];
}

}  // namespace fl::cuda
