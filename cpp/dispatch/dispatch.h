// Which row of the kernel table answers a call.
#pragma once

#include <string>
#include <string_view>

#include "device/loaded_code.h"
#include "table/registry.h"

namespace fl {

// Where a call runs. `automatic` lets run.cpp decide by the estimated cost, transfers included.
struct Device {
  enum Kind { automatic, cpu, cuda } kind = automatic;
  int ordinal = 0;
  bool operator==(const Device&) const = default;
};
FL_EXPORT Device parse_device(std::string_view text);  // "auto", "cpu", "cuda", "cuda:1"; throws InvalidValue

// The code that choices on a device go by (device.h): they are remembered with it. None on the CPU.
LoadedCode code_on(Device device);

// The named row; throws InvalidValue with the list of names if there is none.
template <class Args>
FL_EXPORT const Kernel<Args>& find(std::string_view name);

// The cheapest available and legal row of one kind of device. With a name, that row or an error that says why not.
template <class Args>
const Kernel<Args>& choose(const Args& args, Device device, std::string_view name = {});

// Whether choose() would find a row.
template <class Args>
FL_EXPORT bool serves(const Args& args, Device device, std::string_view name = {});

// What a row is expected to take: its rule, corrected where the device has been tuned (tuning.h).
template <class Args>
double estimate_us(const Kernel<Args>& row, const Args& args, Device device);

// One line for the log: what choose() returns and why each other row of the table was not taken.
template <class Args>
std::string explain(const Args& args, Device device, const Kernel<Args>& chosen);

}  // namespace fl
