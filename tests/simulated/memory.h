// Device memory and pinned memory. Device memory is memory of this process that nobody else is told about.
#pragma once

#include <cstddef>
#include <cstring>

namespace simulated {

constexpr int poison = 0xFF;  // every byte: a NaN

// By memcmp, which is quick without -O3 too.
inline bool each_byte_is(unsigned char value, const void* data, std::size_t bytes) {
  const auto* const first = static_cast<const unsigned char*>(data);
  return bytes == 0 || (*first == value && std::memcmp(first, first + 1, bytes - 1) == 0);
}

// Ends the process if a piece of work that runs now touches something else than live memory of its device or pinned
// memory; with `of_others`, of another device that has given access to this one.
void check_device_access(const void* data, std::size_t bytes, const char* what, bool of_others = false);

}  // namespace simulated
