// What the control groups of this process leave it.
#pragma once

#include <cstddef>
#include <string>

#include "core/export.h"

namespace fl {

struct CgroupLimits {
  int cpus = 0;            // of the quota, rounded up; 0: none
  std::size_t memory = 0;  // bytes; 0: no limit
};
// Of versions 1 and 2, the least of all groups from the process's own up to the root. `root` stands before the names of
// the system's files: the tests have files of their own.
FL_EXPORT CgroupLimits cgroup_limits(const std::string& root = "");

}  // namespace fl
