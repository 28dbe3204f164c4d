#include "run/ignored_settings.h"

#include <cstdlib>

#include "device/device_info.h"
#include "device/hardware.h"
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
  for (int i = 0; i < cuda::device_count(); ++i)
    if (const std::string& ignored = cuda::device_info(i).ignored; !ignored.empty()) all.push_back(ignored);
  return all;
}

}  // namespace fl
