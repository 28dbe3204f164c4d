#include "runtime/cache_sizes.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace fl {
namespace {

// "32768K"; 0 if there is no such file.
std::size_t read_size(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[32];
  const auto length = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (length <= 0) return 0;
  text[length] = 0;
  char* unit = nullptr;
  const std::size_t number = std::strtoul(text, &unit, 10);
  return number << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : 0);
}

// Linux describes each cache of the first core in a folder of its own. (sysconf may answer for a whole socket, of which
// a core reaches a part: 384 MiB where it is 32.)
std::size_t largest_cache() {
  std::size_t largest = 0;
  char path[] = "/sys/devices/system/cpu/cpu0/cache/index0/size";
  char& digit = path[sizeof path - sizeof "0/size"];
  for (; digit <= '9'; ++digit)
    if (const std::size_t bytes = read_size(path); bytes > largest) largest = bytes;
  return largest ? largest : std::size_t(32) << 20;
}

std::atomic<std::size_t> known_cache{0};  // 0: not asked yet

}  // namespace

std::size_t last_level_cache() {
  std::size_t bytes = known_cache.load(std::memory_order_relaxed);
  if (!bytes) known_cache.store(bytes = largest_cache(), std::memory_order_relaxed);
  return bytes;
}

void assume_last_level_cache(std::size_t bytes) { known_cache.store(bytes, std::memory_order_relaxed); }

}  // namespace fl
