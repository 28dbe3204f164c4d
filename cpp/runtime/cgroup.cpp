#include "runtime/cgroup.h"

#include <charconv>
#include <cstdint>
#include <fstream>
#include <limits>

namespace fl {
namespace {

// The whole number that begins a line, 0 for "max", -1 and anything else.
int64_t number(std::istream& from) {
  std::string word;
  int64_t n = 0;
  if (!(from >> word)) return 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), n);
  if (error == std::errc::result_out_of_range) return word[0] == '-' ? 0 : std::numeric_limits<int64_t>::max();
  return error == std::errc() && rest == word.data() + word.size() && n > 0 ? n : 0;
}
int64_t number(const std::string& file) {
  std::ifstream from(file);
  return number(from);
}

template <class Int>
void lower(Int& limit, int64_t found) {
  const auto most = int64_t{std::numeric_limits<int>::max()};
  if (sizeof(Int) == sizeof(int) && found > most) found = most;
  if (found > 0 && (limit == 0 || Int(found) < limit)) limit = Int(found);
}
void lower_cpus(CgroupLimits& limits, int64_t quota, int64_t period) {
  if (quota > 0 && period > 0) lower(limits.cpus, (quota - 1) / period + 1);
}

// One group's files. Those of a controller that is elsewhere are not there.
void read_v2(CgroupLimits& limits, const std::string& group) {
  std::ifstream cpu(group + "/cpu.max");
  const int64_t quota = number(cpu), period = number(cpu);
  lower_cpus(limits, quota, period);
  lower(limits.memory, number(group + "/memory.max"));
}
void read_v1_cpu(CgroupLimits& limits, const std::string& group) {
  lower_cpus(limits, number(group + "/cpu.cfs_quota_us"), number(group + "/cpu.cfs_period_us"));
}
void read_v1_memory(CgroupLimits& limits, const std::string& group) {
  lower(limits.memory, number(group + "/memory.limit_in_bytes"));
}

// From the group itself to the root. In a container whose path is the host's only the root is there.
template <class Read>
void read_all(CgroupLimits& limits, const std::string& mount, std::string path, Read read) {
  for (;; path.resize(path.find_last_of('/'))) {
    if (path == "/") path.clear();
    read(limits, mount + path);
    if (path.find('/') == std::string::npos) return;
  }
}

bool lists(const std::string& controllers, const std::string& name) {  // separated by commas
  return ("," + controllers + ",").find("," + name + ",") != std::string::npos;
}

}  // namespace

CgroupLimits cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  const std::string mounts = root + "/sys/fs/cgroup";
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      for (const char* mount : {"", "/unified"}) read_all(limits, mounts + mount, path, read_v2);
    }
    if (lists(controllers, "cpu")) read_all(limits, mounts + "/cpu", path, read_v1_cpu);
    if (lists(controllers, "memory")) read_all(limits, mounts + "/memory", path, read_v1_memory);
  }
  return limits;
}

}  // namespace fl
