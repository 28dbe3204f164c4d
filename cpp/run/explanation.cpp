#include "run/forecast.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "core/operations.h"
#include "core/text.h"
#include "device/device_info.h"
#include "dispatch/tuning.h"
#include "run/placement.h"

namespace fl {
namespace {

// 'cuda:0', and "cuda:0,cuda:2" as the list that it stands for: ['cuda:0', 'cuda:2'].
std::string quoted(std::string_view device) {
  std::string text = "'";
  for (const char c : device) text += c == ',' ? std::string("', '") : std::string(1, c);
  text += "'";
  return device.find(',') == device.npos ? text : "[" + text + "]";
}

std::string expected(const Forecast& forecast) {
  return "about " + time_text(forecast.us) + (forecast.steps ? " with the copies to the GPU and back" : "");
}

std::string place_name(Device device) { return device.kind == Device::cpu ? "the CPU" : device_text(device); }

// Where operands in host memory could be computed as well.
std::optional<Device> other_device(const Forecast& taken, const CallOptions& options) {
  if (options.device_memory || options.device.kind != Device::automatic || !options.kernel.empty()) return std::nullopt;
  if (taken.device.kind == Device::cuda) return Device{Device::cpu, 0};
  return cuda::device_count() > 0 ? std::optional(Device{Device::cuda, 0}) : std::nullopt;
}

// On which device, and what decided that.
template <class Args>
std::string place(const Args& args, const CallOptions& options, const AsWritten& written, const Forecast& taken) {
  const std::string where = "on " + place_name(taken.device);
  if (written.device != "auto") return where + ", because device=" + quoted(written.device) + " says so";
  if (!options.kernel.empty()) return where + ", where the kernel that was asked for runs";
  if (options.device_memory) return where + ", where its operands are";
  if (const auto& environment = environment_device())
    return where + ", because FASTLINALG_DEVICE=" + environment->text + " says so";
  const std::optional<Device> device = other_device(taken, options);
  if (!device) return where + ": there is no CUDA device";
  CallOptions elsewhere = options;
  elsewhere.device = *device;
  const Forecast other = forecast(args, elsewhere);
  return where + ": " + expected(taken) + "; on " + place_name(other.device) + " " + expected(other);
}

struct Named {
  std::string reason;
  std::vector<const char*> names;
};

// Rows that could not be chosen, by the reason, in the order in which reasons come.
std::vector<Named> refused(const std::vector<NotTaken>& others) {
  std::vector<Named> found;
  for (const NotTaken& other : others) {
    if (other.reason.empty()) continue;
    const auto same = std::ranges::find(found, other.reason, &Named::reason);
    (same == found.end() ? found.emplace_back(Named{other.reason, {}}) : *same).names.push_back(other.name);
  }
  return found;
}

// Rows that could have been chosen, the fastest first.
std::vector<NotTaken> possible(const std::vector<NotTaken>& others) {
  std::vector<NotTaken> found;
  std::ranges::copy_if(others, std::back_inserter(found), [](const NotTaken& other) { return other.reason.empty(); });
  std::ranges::sort(found, {}, [](const NotTaken& other) { return std::pair(other.us, std::string_view(other.name)); });
  return found;
}

std::string why(const CallOptions& options, const Forecast& taken, std::size_t others) {
  const std::string kernel = "\n  kernel   " + std::string(taken.kernel) + " (" + taken.blurb + "): ";
  if (!options.kernel.empty()) return kernel + "as asked for";
  if (others == 0) return kernel + "the only kernel that can compute it here";
  return kernel + "expected to be the fastest of " + std::to_string(others + 1) + " kernels that can compute it here";
}

// What makes another machine choose otherwise.
std::string corrected_by(Device device) {
  const std::string table = tuning_source(device);
  return table.empty() ? "" : "\n  tuned    the estimates are corrected by " + table;
}

std::string what_it_takes(const AsWritten& written, const Forecast& taken) {
  std::string text;
  if (taken.triangle)
    text += "\n  product  symmetric, a matrix times its own transpose: one triangle is computed and mirrored";
  text += "\n  time     " + expected(taken);
  if (taken.steps > 1) text += ", in " + std::to_string(taken.steps) + " parts that overlap with them";
  if (written.runs > 1)
    text += "\n  batch    " + std::to_string(written.runs) +
            " calls of the kernel, since the strides of the batch are uneven; this is of one";
  return text;
}

std::string the_others(const Forecast& taken, std::span<const NotTaken> next) {
  std::string text;
  if (!next.empty())
    text += std::string("\n  next     ") + (taken.steps > 1 ? "for the largest part " : "") +
            joined(next.first(std::min<std::size_t>(next.size(), 4)), ", ",
                   [](const NotTaken& other) { return std::string(other.name) + " " + time_text(other.us); });
  for (const Named& group : refused(taken.others)) {
    const std::vector<const char*> shown(group.names.begin(),
                                         group.names.begin() + std::min<std::ptrdiff_t>(group.names.size(), 3));
    text += "\n  not      " + joined(shown, ", ");
    if (group.names.size() > 3) text += " and " + std::to_string(group.names.size() - 3) + " more";
    text += ": " + group.reason;
  }
  return text;
}

}  // namespace

template <class Args>
Explanation explanation(const Args& args, const CallOptions& options, const AsWritten& written) {
  Explanation answer{.taken = forecast(args, options), .text = describe(args)};
  const Forecast& taken = answer.taken;
  if (!taken.kernel) {
    answer.text += ": nothing to compute, so no kernel is called";
    return answer;
  }
  const std::vector<NotTaken> next = possible(taken.others);
  answer.text += ' ';
  answer.text += place(args, options, written, taken) + why(options, taken, next.size()) +
                 what_it_takes(written, taken) + corrected_by(taken.device) + the_others(taken, next);
  return answer;
}

#define FL_INSTANTIATE(Args) template Explanation explanation(const Args&, const CallOptions&, const AsWritten&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
