#include "bindings/arrays/call_location.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>

#include "bindings/arrays/gil.h"
#include "core/call_device.h"
#include "core/errors.h"
#include "core/lazy.h"
#include "device/streams.h"
#include "runtime/fork.h"

namespace fl::py {
namespace {

std::string place_name(int device) { return device < 0 ? "host memory" : "cuda:" + std::to_string(device); }

// Operands of libraries that cannot be told to wait: each lives until the device has come past the call that uses it.
struct Kept {
  cuda::StreamEvent event;
  std::vector<nb::object> owners;
};

constinit PerProcess<std::mutex> keeping;  // of the list: no Python code runs under it
std::vector<Kept>& kept() {
  static constinit Lazy<std::vector<Kept>> list;
  return list.get([] { return std::vector<Kept>(); });
}

}  // namespace

void drop_kept_operands() {
  std::vector<Kept> done;  // their destructors may run Python code that comes back here
  const std::lock_guard lock(keeping.get());
  const auto first_done = std::partition(kept().begin(), kept().end(), [](const Kept& k) { return !k.event.passed(); });
  std::move(first_done, kept().end(), std::back_inserter(done));
  kept().erase(first_done, kept().end());
}

void CallLocation::finish_after_error() noexcept {
  try {
    order_others();
  } catch (...) {
    // The call has failed already, and this was to order what it had queued.
  }
}

void CallLocation::refuse(const char* name, int device) const {
  throw InvalidValue("operands must lie in one place: " + std::string(first_) + " is in " + place_name(device_) +
                     " and " + name + " in " + place_name(device) + "; copy one of them");
}

// "cuda" means the GPU that the operands are on.
void CallLocation::check_asked(const char* name, int device) const {
  const Device asked = parse_device(asked_);
  if (asked.kind == Device::automatic || asked_ == "cuda") return;
  if (asked.kind == Device::cuda && !asked.set && asked.ordinal == device) return;
  throw InvalidValue(std::string(name) + " is in the memory of " + place_name(device) + " and device='" +
                     std::string(asked_) + "' was asked for; copy the operands there, or leave device='auto'");
}

void CallLocation::start(const char* name, nb::handle operand, const Library& library, int device) {
  check_asked(name, device);
  current_ = current_stream(library, device);
  if (!stream_) stream_ = current_ ? current_ : cuda::own_stream(device);
  set_first(name, operand, library);
  device_ = device;
}

// The stream that is current in a library is asked for once in a call.
void CallLocation::add_device(const char* name, nb::handle operand, const Library& library, int device) {
  if (!first_) start(name, operand, library, device);
  else if (device != device_) refuse(name, device);
  void* const current = library.kind == library_.kind ? current_ : current_stream(library, device);
  if (current) wait_for(current);
}

void CallLocation::wait_for(void* stream) {
  if (stream == stream_ || std::ranges::find(others_, stream) != others_.end()) return;
  const GilReleased released;
  if (cuda::order_after(device_, stream_, stream)) others_.push_back(stream);
}

void CallLocation::keep(nb::object owner) { kept_.push_back(std::move(owner)); }

void CallLocation::order_others() {
  if (const std::vector<void*> others = std::exchange(others_, {}); !others.empty()) {
    const GilReleased released;
    for (void* const other : others) cuda::order_after(device_, other, stream_);
  }
  if (kept_.empty()) return;
  drop_kept_operands();
  Kept used{cuda::StreamEvent(device_, stream_), std::exchange(kept_, {})};
  const std::lock_guard lock(keeping.get());
  kept().push_back(std::move(used));
}

}  // namespace fl::py
