#include "capi/log.h"

#include <atomic>

#include "capi/errors.h"
#include "fastlinalg/fastlinalg.h"
#include "run/inspection.h"
#include "runtime/said_lines.h"

namespace fl {

struct LogTarget {
  fl_log_function write;
  void* user;
};

namespace {

// What a target was is kept, as calls that have begun may still write to it.
constinit std::atomic<const LogTarget*> current{nullptr};
constinit SaidLines said;

}  // namespace

const LogTarget* log_target() noexcept { return current.load(std::memory_order_acquire); }

void log_once(const LogTarget& target, const std::string& line) {
  if (said.add(line)) target.write(line.c_str(), target.user);
}

void say_ignored_settings(const LogTarget& target, Device device) {
  for (const std::string& line : ignored_settings()) log_once(target, line);
  if (device.kind == Device::cpu) return;
  for (const std::string& line : ignored_device_settings()) log_once(target, line);
}

}  // namespace fl

fl_status fl_set_log(fl_log_function write, void* user) {
  return fl::guarded([&] {
    fl::said.clear();
    fl::current.store(write ? new fl::LogTarget{write, user} : nullptr, std::memory_order_release);
  });
}
