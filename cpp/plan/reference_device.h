// Constants that decide the order of sums. They are frozen: a result's bits must not change when a device is described
// better or a cost is fitted again, so nothing in this folder reads a cost or the device that is there.
#pragma once

#include <cstdint>

namespace fl {

// The multiprocessors that split-K counts fill, on every device: those of an H100 SXM and an H200.
constexpr int64_t PLAN_MULTIPROCESSORS = 132;

}  // namespace fl
