// How much memory the caches of this machine hold.
#pragma once

#include <cstddef>

#include "core/export.h"

namespace fl {

// Bytes of the last level, as the system tells; 32 MiB where it does not.
std::size_t last_level_cache();
FL_EXPORT void assume_last_level_cache(std::size_t bytes);  // for the tests; 0: as the system tells

}  // namespace fl
