#include "run/ignored_settings.h"

#include <cstdlib>
#include <utility>

#include "core/errors.h"
#include "device/device_info.h"
#include "device/hardware.h"
#include "device/pretended.h"
#include "run/placement.h"
#include "runtime/threading.h"

namespace fl {

std::vector<std::string> ignored_settings() {
  std::vector<std::string> all;
  for (const std::string& ignored : {ignored_num_threads(), ignored_cpu_cap()})
    if (!ignored.empty()) all.push_back(ignored);
  return all;
}

std::vector<std::string> ignored_device_settings() {
  std::vector<std::string> all;
  if (!std::getenv("FASTLINALG_COMPUTE_CAPABILITY")) return all;
  const auto add = [&](const std::string& ignored) {
    if (!ignored.empty()) all.push_back(ignored);
  };
  const int devices = cuda::device_count();
  for (int i = 0; i < devices; ++i) add(cuda::device_info(i).ignored);
  if (devices == 0) add(unreadable_capability());
  return all;
}

std::vector<std::string> unusable_settings() {
  std::vector<std::string> all = ignored_settings();
  for (std::string& ignored : ignored_device_settings()) all.push_back(std::move(ignored));
  try {
    environment_device();
  } catch (const InvalidValue& error) {
    all.push_back(error.what());
  }
  return all;
}

}  // namespace fl
