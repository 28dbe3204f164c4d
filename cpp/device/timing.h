// What calls, kernels and links take: for the benchmarks, tests and `tune`.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "core/export.h"

namespace fl::cuda {

// Captures `launches` calls of work(stream) into a CUDA graph, replays it `replays` times after a warm-up and returns
// the microseconds per call of each replay, from CUDA events.
FL_EXPORT std::vector<double> time_in_graph(int device, int launches, int replays,
                                            const std::function<void(void*)>& work);

// Microseconds for so many bytes from and to pinned host memory: in, out, and both at the same time; medians.
struct LinkTimes {
  double in_us = 0, out_us = 0, both_us = 0;
};
FL_EXPORT LinkTimes time_link(int device, std::size_t in_bytes, std::size_t out_bytes, int repeats);

}  // namespace fl::cuda
