#include "dispatch/dispatch.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/call_cache.h"
#include "core/errors.h"
#include "core/operations.h"
#include "core/text.h"
#include "device/device_info.h"
#include "device/hardware.h"
#include "dispatch/call_key.h"
#include "dispatch/tuning.h"
#include "plan/accumulation_depth.h"
#include "runtime/per_thread.h"
#include "runtime/threading.h"

namespace fl {
namespace {

bool usable(Needs needs, Device device) {
  if (on_cuda(needs) != (device.kind == Device::cuda)) return false;
  return on_cuda(needs) ? available_on(needs, device.ordinal) : available(needs);
}

// The correction of a row on a tuned device, or null.
template <class Args>
const Curve* correction(const Kernel<Args>& row, Device device) {
  const Curves* tuned = tuned_rows<Args>(device);
  const Curve* const curve = tuned ? &(*tuned)[std::size_t(&row - kernels<Args>().data())] : nullptr;
  return curve && !curve->empty() ? curve : nullptr;
}

// By the rules alone, whatever tuning says. The costs of products by narrower vectors may be those of another CPU.
template <class Args>
const char* passed_over_by_rules(const Kernel<Args>& row, Device device) {
  if (on_cuda(row.needs)) return passed_over_on(row.needs, row.traits, device.ordinal);
  for (const Needs wider : {Needs::avx2_fma, Needs::avx512f})
    if (std::is_same_v<Args, SgemmArgs> && row.needs < wider && available(wider)) return "this CPU has wider vectors";
  return nullptr;
}

// Whether the row serves a call of that precision: nullptr, or what is wrong, as the end of "this kernel needs ...".
template <class Args>
const char* lacks_precision(const Kernel<Args>& row, const Args& args) {
  if constexpr (requires { args.precision; })
    if (args.precision == Precision::reproducible && !row.traits.reproducible)
      return "another precision than 'reproducible', whose order of sums it does not keep";
  return nullptr;
}
template <class Args>
const char* refuses(const Kernel<Args>& row, const Args& args) {
  const char* const lacks = lacks_precision(row, args);
  return lacks ? lacks : row.legal(args);
}

// Rows that are there for other calls than this one: nullptr, or what they are there for. Those that keep the order of
// docs/reproducible.md take longer for it, and steps of SGEMM's ladder but the last are taken by their names alone.
template <class Args>
const char* not_a_choice(const Kernel<Args>& row, const Args& args) {
  if (row.traits.only_by_name) return "a step of the ladder, there to be read";
  if constexpr (requires { args.precision; })
    if (row.traits.only_reproducible && args.precision != Precision::reproducible)
      return "there for precision='reproducible'";
  return nullptr;
}

// Why a row that was asked for by name cannot answer.
template <class Args>
void require(const Kernel<Args>& row, const Args& args, Device device) {
  const std::string prefix = std::string(Operation<Args>::name) + " kernel '" + row.name + "' ";
  if (on_cuda(row.needs) != (device.kind == Device::cuda))
    throw InvalidValue(prefix + "runs on " + (on_cuda(row.needs) ? "a CUDA device" : "the CPU") + "; device='" +
                       (device.kind == Device::cuda ? "cuda" : "cpu") + "' was asked for");
  if (!usable(row.needs, device))
    throw InvalidValue(prefix + "needs " + needs_name(row.needs) + ": " +
                       (on_cuda(row.needs) ? why_not_on(row.needs, device.ordinal) : why_not(row.needs)));
  if (const char* lacks = refuses(row, args))
    throw InvalidValue(prefix + "needs " + lacks + "; leave its name out to let fastlinalg choose");
}

// Whether the sums of a row are as short as the call wants them.
template <class Args>
bool short_enough(const Kernel<Args>& row, const Args& args, int64_t limit) {
  return limit == any_depth || !row.depth || row.depth(args) <= limit;
}

// By the rules alone, or among the tuned rows by their corrected costs. A row whose sums are too long is only taken
// where all others' are.
template <class Args>
const Kernel<Args>* cheapest(const Args& args, Device device, const Curves* tuned) {
  const auto rows = kernels<Args>();
  const Kernel<Args>* best = nullptr;
  bool best_short = false;
  double best_cost = 0;
  const int64_t limit = deepest_allowed(args);
  const DeviceSpec& spec = spec_of(device);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (tuned && (*tuned)[i].empty()) continue;
    if (!usable(rows[i].needs, device) || refuses(rows[i], args) || not_a_choice(rows[i], args)) continue;
    if (!tuned && passed_over_by_rules(rows[i], device)) continue;
    const double us = rows[i].cost(args, spec), cost = tuned ? (*tuned)[i].corrected(us) : us;
    const bool is_short = short_enough(rows[i], args, limit);
    if (!best || is_short > best_short || (is_short == best_short && cost < best_cost))
      best = &rows[i], best_short = is_short, best_cost = cost;
  }
  return best;
}

template <class Args>
const Kernel<Args>& cheapest(const Args& args, Device device) {
  const Kernel<Args>* best = cheapest<Args>(args, device, nullptr);
  // The reference rows, and on a GPU those of a thread per output or a plain tile, accept every call that reaches them,
  // so this is a fault of the table.
  if (!best) throw std::logic_error(std::string("no ") + Operation<Args>::name + " kernel takes this call");
  return correction(*best, device) ? *cheapest(args, device, tuned_rows<Args>(device)) : *best;
}

// What a thread has chosen, by the sizes of calls. As many as two long lists of products have shapes.
template <class Args>
class LastChoices {
 public:
  auto& of(const Args& args) {
    uint64_t hash = 0;
    for (const int64_t size : sizes_of(args)) hash = mixed(hash, uint64_t(size));
    return sets_[(hash >> 32) % sets_.size()];
  }

 private:
  std::array<CallCache<CallKey<Args>, const Kernel<Args>*, 8>, 128> sets_;
};

// Null if this thread has not chosen for such a call lately.
template <class Args>
const Kernel<Args>* last_choice(const Args& args, Device device) {
  auto* const last = per_thread<LastChoices<Args>>();
  const auto* const known = last ? last->of(args).find(CallKey<Args>(args, device, num_threads())) : nullptr;
  return known ? *known : nullptr;
}

// Names of rows that run here, those that are fewest edits away from `name` first; at most `most`.
template <class Args>
std::string closest_names(std::string_view name, std::size_t most) {
  std::vector<std::pair<std::size_t, std::string_view>> found;
  for (const auto& row : kernels<Args>())
    if (available(row.needs)) found.emplace_back(edit_distance(name, row.name), row.name);
  std::stable_sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  found.resize(std::min(most, found.size()));
  return joined(found, ", ", [](const auto& row) { return std::string("'").append(row.second) + "'"; });
}

}  // namespace

template <class Args>
const Kernel<Args>& row_named(std::string_view name) {
  if (const Kernel<Args>* const row = find_or_null<Args>(name)) return *row;
  const std::string op = Operation<Args>::name;
  throw UnknownKernel(op, "unknown " + op + " kernel '" + quoted(name) +
                              "'; the closest that run here: " + closest_names<Args>(name, 3));
}

const DeviceSpec& spec_of(Device device) {
  return device.kind == Device::cuda ? cuda::device_info(device.ordinal).spec : host_spec();
}

template <class Args>
const Kernel<Args>& choose(const Args& args, Device device, std::string_view name) {
  if (!name.empty()) {
    const auto& row = row_named<Args>(name);
    require(row, args, device);
    return row;
  }
  // Asking every kernel takes a few hundred nanoseconds on the CPU, as long as the smallest products, and some
  // microseconds on a device, as long as their launches. So each thread remembers its last choices.
  auto* const last = per_thread<LastChoices<Args>>();
  if (!last) return cheapest(args, device);
  auto& alike = last->of(args);
  const CallKey<Args> key(args, device, num_threads());
  if (const auto* known = alike.find(key)) return **known;
  return *alike.keep(key, &cheapest(args, device));
}

template <class Args>
bool serves(const Args& args, Device device, std::string_view name) {
  if (name.empty() && last_choice(args, device)) return true;
  for (const auto& row : kernels<Args>())
    if ((name.empty() || name == row.name) && usable(row.needs, device) && !refuses(row, args)) return true;
  return false;
}

template <class Args>
bool reads_stored(const Args& args, std::string_view name) {
  if constexpr (std::is_same_v<Args, TransposeArgs>) return false;
  for (const Stored& operand : args.stored)
    if (operand.converted() && !operand.in_16_bits()) return false;
  return serves(args, {Device::cpu, 0}, name);
}

template <class Args>
const char* passed_over(const Kernel<Args>& row, Device device) {
  return correction(row, device) ? nullptr : passed_over_by_rules(row, device);
}

template <class Args>
double estimate_us(const Kernel<Args>& row, const Args& args, Device device) {
  const double us = row.cost(args, spec_of(device));
  const Curve* const curve = correction(row, device);
  return curve ? curve->corrected(us) : us;
}

template <class Args>
std::vector<NotTaken> not_taken(const Args& args, Device device, const Kernel<Args>& chosen) {
  const int64_t limit = deepest_allowed(args);
  const bool corrected = correction(chosen, device);  // else the rules alone chose, as in cheapest()
  std::vector<NotTaken> others;
  for (const auto& row : kernels<Args>()) {
    if (&row == &chosen || on_cuda(row.needs) != (device.kind == Device::cuda)) continue;
    NotTaken other{.name = row.name, .reason = {}};
    if (!usable(row.needs, device)) other.reason = std::string("needs ") + needs_name(row.needs);
    else if (const char* why = corrected ? passed_over(row, device) : passed_over_by_rules(row, device))
      other.reason = why;
    else if (const char* lacks = refuses(row, args)) other.reason = std::string("needs ") + lacks;
    else if (const char* purpose = not_a_choice(row, args)) other.reason = purpose;
    else if (!short_enough(row, args, limit))
      other.reason = "sums of " + std::to_string(row.depth(args)) + " additions in a row";
    else if (corrected && !correction(row, device)) other.reason = "no correction in the tuning table";
    else other.us = corrected ? estimate_us(row, args, device) : row.cost(args, spec_of(device));
    others.push_back(std::move(other));
  }
  return others;
}

template <class Args>
std::string explain(const Args& args, Device device, const Kernel<Args>& chosen) {
  const auto estimated = [](double us) { return "estimated " + time_text(us); };
  const std::string others = joined(not_taken(args, device, chosen), "; ", [&](const NotTaken& other) {
    return std::string(other.name) + ": " + (other.reason.empty() ? estimated(other.us) : other.reason);
  });
  return std::string(chosen.name) + " (" + estimated(estimate_us(chosen, args, device)) +
         (others.empty() ? "" : "; not taken: " + others) + ")";
}

#define FL_INSTANTIATE(Args)                                                          \
  template const Kernel<Args>& choose(const Args&, Device, std::string_view);         \
  template bool serves(const Args&, Device, std::string_view);                        \
  template bool reads_stored(const Args&, std::string_view);                          \
  template const char* passed_over(const Kernel<Args>&, Device);                      \
  template double estimate_us(const Kernel<Args>&, const Args&, Device);              \
  template std::vector<NotTaken> not_taken(const Args&, Device, const Kernel<Args>&); \
  template std::string explain(const Args&, Device, const Kernel<Args>&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
