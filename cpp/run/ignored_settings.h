// Environment variables that are set and mean nothing, or not what they say: a sentence for each.
#pragma once

#include <string>
#include <vector>

#include "core/export.h"

namespace fl {

FL_EXPORT std::vector<std::string> ignored_settings();         // of any call
FL_EXPORT std::vector<std::string> ignored_device_settings();  // of calls that may use a GPU; looks for devices
FL_EXPORT std::vector<std::string> unusable_settings();        // both, and FASTLINALG_DEVICE, which fails the call

}  // namespace fl
