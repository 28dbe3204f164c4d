// Device memory and pinned memory. Device memory is memory of this process that nobody else is told about.
#pragma once

#include <cstddef>

namespace simulated {

constexpr int poison = 0xFF;  // every byte: a NaN

// Ends the process if a piece of work that runs now touches something else than live memory of its device or pinned
// memory; with `of_others`, of another device that has given access to this one.
void check_device_access(const void* data, std::size_t bytes, const char* what, bool of_others = false);

}  // namespace simulated
