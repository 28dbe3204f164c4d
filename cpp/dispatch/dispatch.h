// Which row of the kernel table answers a call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/call_device.h"
#include "table/registry.h"

namespace fl {

// What costs are asked about; the host for all but GPUs.
FL_EXPORT const DeviceSpec& spec_of(Device device);

// The row of that name. An unknown one is an InvalidValue with the names that come closest of rows that run here.
template <class Args>
FL_EXPORT const Kernel<Args>& row_named(std::string_view name);

// The cheapest available and legal row of one kind of device. With a name, that row or an error that says why not.
template <class Args>
const Kernel<Args>& choose(const Args& args, Device device, std::string_view name = {});

// Whether choose() would find a row.
template <class Args>
FL_EXPORT bool serves(const Args& args, Device device, std::string_view name = {});

// Whether a row of the CPU, or the named one, reads the operands as they are stored. Those of 16 bits alone: of wider
// ones it would read more than of a copy.
template <class Args>
FL_EXPORT bool reads_stored(const Args& args, std::string_view name = {});

// Why choose() takes such a row by name alone on a device that can run it; nullptr if it may choose it.
template <class Args>
FL_EXPORT const char* passed_over(const Kernel<Args>& row, Device device);

// What a row is expected to take: its rule, corrected where the device has been tuned (tuning.h).
template <class Args>
double estimate_us(const Kernel<Args>& row, const Args& args, Device device);

// A row that choose() has not taken, of the chosen one's kind of device.
struct NotTaken {
  const char* name;
  std::string reason;  // why it could not be
  double us = 0;       // or, if that is empty, what it was expected to take
};
template <class Args>
std::vector<NotTaken> not_taken(const Args& args, Device device, const Kernel<Args>& chosen);

// One line for the log: what choose() returns and why each other row of the table was not taken.
template <class Args>
std::string explain(const Args& args, Device device, const Kernel<Args>& chosen);

}  // namespace fl
