// How the CPU's SGEMV is cut into tasks for threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"

namespace fl {

// Columns that are summed in one go (gemv.h). Part of the specification of the result's bits: it depends on nothing.
constexpr int64_t section = 1024;

struct GemvPlan {
  int64_t tasks = 1;                 // parts of the rows
  bool split_sections = false;       // too few rows for the threads: sections are the tasks instead
  bool across_batch = false;         // whole products are the tasks
  std::size_t workspace_floats = 0;  // for each product that runs at a time
};
GemvPlan gemv_plan(const SgemvArgs& p, int threads);

}  // namespace fl
