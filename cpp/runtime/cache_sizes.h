// How much memory the caches of this machine hold.
#pragma once

#include <cstddef>

namespace fl {

// Bytes of the last level, as the system tells; 32 MiB where it does not.
std::size_t last_level_cache();

}  // namespace fl
