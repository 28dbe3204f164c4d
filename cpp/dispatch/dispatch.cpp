#include "dispatch/dispatch.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include "core/errors.h"
#include "device/device.h"
#include "device/hardware.h"
#include "dispatch/tuning.h"
#include "plan/chains.h"
#include "runtime/threading.h"

namespace fl {
namespace {

template <class Args>
std::string names() {
  std::string list;
  for (const auto& row : kernels<Args>()) list += (list.empty() ? "" : ", ") + std::string(row.name);
  return list;
}

bool usable(Needs needs, Device device) {
  if (on_cuda(needs) != (device.kind == Device::cuda)) return false;
  return on_cuda(needs) ? available_on(needs, device.ordinal) : available(needs);
}

bool pays(Needs needs, Device device) { return !on_cuda(needs) || pays_on(needs, device.ordinal); }

// Why a row that was asked for by name cannot answer.
template <class Args>
void require(const Kernel<Args>& row, const Args& args, Device device) {
  const std::string prefix = std::string(op_name<Args>()) + " kernel '" + row.name + "' ";
  if (on_cuda(row.needs) != (device.kind == Device::cuda))
    throw InvalidValue(prefix + "runs on " + (on_cuda(row.needs) ? "a CUDA device" : "the CPU") + "; device='" +
                       (device.kind == Device::cuda ? "cuda" : "cpu") + "' was asked for");
  if (!usable(row.needs, device))
    throw InvalidValue(prefix + "needs " + needs_name(row.needs) + ": " +
                       (on_cuda(row.needs) ? why_not_on(row.needs, device.ordinal) : why_not(row.needs)));
  if (const char* lacks = row.legal(args))
    throw InvalidValue(prefix + "needs " + lacks + "; leave kernel=None to let fastlinalg choose");
}

// Whether the sums of a row are as short as the call wants them.
template <class Args>
bool short_enough(const Kernel<Args>& row, const Args& args, int64_t limit) {
  return limit == any_length || !row.chain || row.chain(args) <= limit;
}

// By the rules alone, or among the tuned rows by their corrected costs. A row whose sums are too long is only taken
// where all others' are.
template <class Args>
const Kernel<Args>* cheapest(const Args& args, Device device, const Curves<Args>* tuned) {
  const auto rows = kernels<Args>();
  const Kernel<Args>* best = nullptr;
  bool best_short = false;
  double best_cost = 0;
  const int64_t limit = longest_chain(args);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (tuned && (*tuned)[i].empty()) continue;
    if (!usable(rows[i].needs, device) || (!tuned && !pays(rows[i].needs, device)) || rows[i].legal(args)) continue;
    const double cost = tuned ? (*tuned)[i].corrected(rows[i].cost(args)) : rows[i].cost(args);
    const bool is_short = short_enough(rows[i], args, limit);
    if (!best || is_short > best_short || (is_short == best_short && cost < best_cost))
      best = &rows[i], best_short = is_short, best_cost = cost;
  }
  return best;
}

template <class Args>
const Kernel<Args>& cheapest(const Args& args, Device device) {
  const Kernel<Args>* best = cheapest<Args>(args, device, nullptr);
  // The reference rows and the simplest GPU rows accept every call that reaches them, so this is a fault of the table.
  if (!best) throw std::logic_error(std::string("no ") + op_name<Args>() + " kernel takes this call");
  const Curves<Args>* tuned = tuned_rows<Args>(device);
  if (tuned && !(*tuned)[std::size_t(best - kernels<Args>().data())].empty()) best = cheapest(args, device, tuned);
  return *best;
}

// ---------------------------------------------------------------- recent choices
// Asking every row takes a few hundred nanoseconds, as long as the smallest products. So each thread remembers its last
// few choices, with all that the rules may look at (rules.h).
template <class T>
void keep_alignment(T*& data) {
  data = reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(data) % 128);
}
void keep_alignments(SgemmArgs& p) { keep_alignment(p.a.data), keep_alignment(p.b.data), keep_alignment(p.c.data); }
void keep_alignments(SgemvArgs& p) { keep_alignment(p.a.data), keep_alignment(p.x.data), keep_alignment(p.y.data); }
void keep_alignments(TransposeArgs& p) { keep_alignment(p.a.data), keep_alignment(p.b.data); }

template <class Args>
class RecentChoices {
 public:
  const Kernel<Args>& choose(const Args& args, Device device) {
    Choice wanted{args, device, num_threads(), tuning_generation(), code_on(device), nullptr};
    keep_alignments(wanted.args);
    for (const Choice& choice : choices_)
      if (choice.row && choice.answers(wanted)) return *choice.row;
    const auto& row = cheapest(args, device);
    wanted.row = &row;
    choices_[next_] = wanted;
    next_ = (next_ + 1) % choices_.size();
    return row;
  }

 private:
  struct Choice {
    Args args;
    Device device;
    int threads = 0;
    unsigned tuning = 0;
    LoadedCode code;
    const Kernel<Args>* row = nullptr;
    bool answers(const Choice& call) const {
      return args == call.args && device == call.device && threads == call.threads && tuning == call.tuning &&
             code == call.code;
    }
  };
  std::array<Choice, 8> choices_{};
  std::size_t next_ = 0;
};

}  // namespace

Device parse_device(std::string_view text) {
  if (text == "auto") return {};
  if (text == "cpu") return {Device::cpu, 0};
  if (text == "cuda") return {Device::cuda, 0};
  if (text.substr(0, 5) == "cuda:") {
    int ordinal = -1;
    const auto end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + 5, end, ordinal);
    if (error == std::errc() && rest == end && ordinal >= 0) return {Device::cuda, ordinal};
  }
  throw InvalidValue("device must be 'auto', 'cpu', 'cuda' or 'cuda:N', got '" + std::string(text) + "'");
}

LoadedCode code_on(Device device) {
  return device.kind == Device::cuda ? cuda::known_code(device.ordinal) : LoadedCode{};
}

template <class Args>
const Kernel<Args>& find(std::string_view name) {
  for (const auto& row : kernels<Args>())
    if (name == row.name) return row;
  throw InvalidValue("unknown " + std::string(op_name<Args>()) + " kernel '" + std::string(name) +
                     "'; there are: " + names<Args>());
}

template <class Args>
const Kernel<Args>& choose(const Args& args, Device device, std::string_view name) {
  if (!name.empty()) {
    const auto& row = find<Args>(name);
    require(row, args, device);
    return row;
  }
  thread_local RecentChoices<Args> recent;
  return recent.choose(args, device);
}

template <class Args>
bool serves(const Args& args, Device device, std::string_view name) {
  for (const auto& row : kernels<Args>())
    if ((name.empty() || name == row.name) && usable(row.needs, device) && !row.legal(args)) return true;
  return false;
}

template <class Args>
double estimate_us(const Kernel<Args>& row, const Args& args, Device device) {
  const double us = row.cost(args);
  const Curves<Args>* tuned = tuned_rows<Args>(device);
  if (!tuned) return us;
  const Curve& curve = (*tuned)[std::size_t(&row - kernels<Args>().data())];
  return curve.empty() ? us : curve.corrected(us);
}

template <class Args>
std::string explain(const Args& args, Device device, const Kernel<Args>& chosen) {
  const int64_t limit = longest_chain(args);
  std::string others;
  for (const auto& row : kernels<Args>()) {
    if (&row == &chosen || on_cuda(row.needs) != (device.kind == Device::cuda)) continue;
    std::string reason;
    if (!usable(row.needs, device)) reason = std::string("needs ") + needs_name(row.needs);
    else if (!pays(row.needs, device)) reason = "not known to gain anything on this device";
    else if (const char* lacks = row.legal(args)) reason = std::string("needs ") + lacks;
    else if (!short_enough(row, args, limit))
      reason = "sums of " + std::to_string(row.chain(args)) + " additions in a row";
    else reason = "estimated " + std::to_string(int64_t(estimate_us(row, args, device))) + " us";
    others += (others.empty() ? "" : "; ") + std::string(row.name) + ": " + reason;
  }
  return std::string(chosen.name) + " (estimated " + std::to_string(int64_t(estimate_us(chosen, args, device))) +
         " us" + (others.empty() ? "" : "; not taken: " + others) + ")";
}

#define FL_INSTANTIATE(Args)                                                  \
  template const Kernel<Args>& find<Args>(std::string_view);                  \
  template const Kernel<Args>& choose(const Args&, Device, std::string_view); \
  template bool serves(const Args&, Device, std::string_view);                \
  template double estimate_us(const Kernel<Args>&, const Args&, Device);      \
  template std::string explain(const Args&, Device, const Kernel<Args>&);
FL_INSTANTIATE(SgemmArgs)
FL_INSTANTIATE(SgemvArgs)
FL_INSTANTIATE(TransposeArgs)
#undef FL_INSTANTIATE

}  // namespace fl
