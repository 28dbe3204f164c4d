#include "runtime/conversion.h"

#include <algorithm>

#include "core/problem.h"
#include "runtime/thread_pool.h"
#include "runtime/threading.h"

namespace fl {
namespace {

// Neighbours that step evenly become one dimension, so that a contiguous array is one line; at least one is left.
std::vector<StridedDim> merged(const std::vector<StridedDim>& dims) {
  std::vector<StridedDim> result;
  for (const StridedDim& dim : dims)
    if (!result.empty() && result.back().stride == dim.stride * dim.size)
      result.back() = {result.back().size * dim.size, dim.stride};
    else result.push_back(dim);
  if (result.empty()) result.push_back({1, 1});
  return result;
}

int64_t begin_of(const std::vector<StridedDim>& outer, int64_t line) {
  int64_t offset = 0;
  for (auto dim = outer.rbegin(); dim != outer.rend(); ++dim) {
    offset += line % dim->size * dim->stride;
    line /= dim->size;
  }
  return offset;
}

}  // namespace

void convert_array(const Stored& stored, const float* from, const std::vector<StridedDim>& dims, float* to) {
  constexpr int64_t task_size = 1 << 16, alone = 1 << 18;  // elements: so many take as long as to wake a thread
  std::vector<StridedDim> outer = merged(dims);
  const auto [length, step] = outer.back();
  outer.pop_back();
  int64_t lines = 1;
  for (const StridedDim& dim : outer) lines *= dim.size;
  if (lines == 0 || length == 0) return;
  const int64_t cuts = ceil_div(length, task_size), cut = ceil_div(length, cuts);
  const int64_t lines_of_task = std::max<int64_t>(task_size / length, 1);
  auto task = [&, length = length, step = step](int64_t index, int) {
    const int64_t first = index / cuts * lines_of_task, begin = index % cuts * cut;
    const int64_t count = std::min(cut, length - begin);
    const OverflowWatch watch(stored);
    for (int64_t line = first; line < std::min(first + lines_of_task, lines); ++line)
      convert(stored, from + begin_of(outer, line) + begin * step, 0, step, to + line * length + begin, 0, 1, count);
  };
  const ThreadCount threads;
  parallel_for(ceil_div(lines, lines_of_task) * cuts, lines * length <= alone ? 1 : threads.count(), task);
}

}  // namespace fl
