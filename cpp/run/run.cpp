#include "run/run.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/errors.h"
#include "core/normalise.h"
#include "cost/cpu_rules.h"
#include "device/device.h"
#include "device/hardware.h"
#include "dispatch/alike.h"
#include "dispatch/tuning.h"
#include "plan/sliced_plan.h"
#include "runtime/host_workspace.h"
#include "runtime/lazy.h"
#include "runtime/threading.h"
#include "transfer/panel_plan.h"

namespace fl {
namespace {

std::optional<Device> device_override() {
  static constinit Lazy<std::optional<Device>> device;
  return device.get([]() -> std::optional<Device> {
    const char* text = std::getenv("FASTLINALG_DEVICE");
    if (!text || !*text) return std::nullopt;
    try {
      return parse_device(text);
    } catch (const InvalidValue& error) {
      throw InvalidValue("FASTLINALG_DEVICE: " + std::string(error.what()));
    }
  });
}

template <class Args>
using SharedPlan = std::shared_ptr<const PanelPlan<Args>>;

// The plan of a call on host operands, with the row of the table for each of its steps. Making one asks the table about
// every shape among the blocks of every plan that is compared: 0.06 ms for 1024 cubed, 0.24 for 4096 (a Zen 4), a sixth
// and a twelfth of the calls. So each thread keeps its last few.
template <class Args>
class RecentPlans {
 public:
  SharedPlan<Args> plan(const Args& layout, Device device, std::string_view kernel) {
    const unsigned tuning = tuning_generation();
    const LoadedCode code = code_on(device);
    for (const Entry& entry : entries_)
      if (entry.plan && entry.layout == layout && entry.device == device && entry.kernel == kernel &&
          entry.tuning == tuning && entry.code == code)
        return entry.plan;
    Entry entry{layout, device, std::string(kernel), tuning, code, make(layout, device, std::string(kernel))};
    entries_[next_] = std::move(entry);
    return entries_[std::exchange(next_, (next_ + 1) % entries_.size())].plan;
  }

 private:
  struct Entry {
    Args layout{};
    Device device;
    std::string kernel;
    unsigned tuning = 0;
    LoadedCode code;
    SharedPlan<Args> plan;
  };
  static SharedPlan<Args> make(const Args& layout, Device device, std::string kernel) {
    const RowFor<Args> row_for = [device, kernel = std::move(kernel)](const Args& sub) -> const Kernel<Args>& {
      return choose(sub, device, kernel);
    };
    PanelPlan<Args> plan = plan_panels<Args>(layout, row_for);
    plan.row_for = row_for;
    return std::make_shared<const PanelPlan<Args>>(std::move(plan));
  }

  std::array<Entry, 8> entries_;
  std::size_t next_ = 0;
};

template <class Args>
SharedPlan<Args> plan_for(const Args& layout, Device device, std::string_view kernel) {
  static thread_local RecentPlans<Args> recent;
  return recent.plan(layout, device, kernel);
}

// No call on the GPU is faster, so most small ones need no plan to be told from those that are.
constexpr double fastest_gpu_call_us = 25;

template <class Args>
Device cheaper_device(const Args& args) {
  const Device cpu{Device::cpu, 0}, gpu{Device::cuda, 0};
  if (cuda::device_count() == 0 || !available_on(Needs::cuda, gpu.ordinal)) return cpu;
  const double cpu_us = estimate_us(choose(args, cpu), args, cpu);
  if (cpu_us < fastest_gpu_call_us) return cpu;
  const HostLink link = cuda::host_link(gpu.ordinal, num_threads());
  if (estimate_us(*plan_for(cuda::device_layout(args), gpu, {}), link) >= cpu_us) return cpu;
  cuda::load_code(gpu.ordinal);
  return available_on(Needs::cuda, gpu.ordinal) ? gpu : cpu;
}

// A call that must not copy is not worth two copies over the link.
bool stays_on_host(const SgemmArgs&) { return false; }
bool stays_on_host(const SgemvArgs&) { return false; }
bool stays_on_host(const TransposeArgs& p) { return p.in_place; }

template <class Args>
Device resolve(const Args& args, const CallOptions& options) {
  Device device = options.device;
  if (device.kind == Device::automatic && !options.kernel.empty())
    return on_cuda(find<Args>(options.kernel).needs) ? Device{Device::cuda, 0} : Device{Device::cpu, 0};
  if (device.kind == Device::automatic) device = device_override().value_or(device);
  if (device.kind == Device::automatic) device = stays_on_host(args) ? Device{Device::cpu, 0} : cheaper_device(args);
  return device;
}

template <class Args>
void log_choice(const CallOptions& options, const Args& args, Device device, const Kernel<Args>& row) {
  const std::string where = device.kind == Device::cpu ? "cpu" : "cuda:" + std::to_string(device.ordinal);
  (*options.log)(where + " " + explain(args, device, row));
}

// The rows that serve precision="accurate" alone decide on the device who computes. The log says it afterwards.
template <class Args>
void run_on_device(const Kernel<Args>& row, const Args& args, int device, const CallOptions& options) {
  if constexpr (std::is_same_v<Args, SgemmArgs>) {
    const std::optional<Slices> slices = slices_of(row);
    if (slices && options.log && options.log_choice && std::isfinite(args.alpha)) {
      cuda::FirstWords left;
      cuda::run_on_device_operands(row, args, device, options.stream, nullptr, &left);
      if (left.read)
        (*options.log)(
            "cuda:" + std::to_string(device) + " " + row.name + ", computed by " +
            sliced_answer(*slices, row.workspace == fp16x2_workspace && bf16x6_stands_by(args), args, left.words));
      return;
    }
  }
  cuda::run_on_device_operands(row, args, device, options.stream);
}

template <class Args>
void choose_row(Decision<Args>& decision, const CallOptions& options) {
  Args args = seen_by_row(decision, options);
  if (decision.device.kind == Device::cuda && !options.device_memory) {
    decision.panels = plan_for(decision.layout, decision.device, options.kernel);
    const auto& step = largest_step(*decision.panels);
    args = sub_problem(decision.layout, step.block);
    decision.row = step.row;
  } else {
    decision.row = &choose(args, decision.device, options.kernel);
  }
  if (options.log && options.log_choice) log_choice(options, args, decision.device, *decision.row);
}

// Only precision="accurate" allows another row: the strict ones have to give the same bits every time.
bool make_strict(SgemmArgs& p) {
  if (p.precision == Precision::strict) return false;
  p.precision = Precision::strict;
  return true;
}
bool make_strict(SgemvArgs&) { return false; }
bool make_strict(TransposeArgs&) { return false; }

// ---------------------------------------------------------------- the shortest calls
// An 8x8 product takes 25 ns, what surrounds it took 80. So each thread keeps the rows of its last calls that are done
// before another thread would wake: their choice depends neither on the number of threads nor on other devices, and
// they run on the calling thread.
template <class Args>
class ShortCalls {
 public:
  bool run(const Args& args, const CallOptions& options) const {
    if (!options.kernel.empty() || options.device_memory || (options.log && options.log_choice)) return false;
    const unsigned tuning = tuning_generation();
    for (const Call& call : calls_)
      if (call.row && call.tuning == tuning && call.device == options.device.kind && alike(call.args, args)) {
        const HostWorkspace workspace(call.workspace);
        call.row->run(args, Context{.workspace = workspace.data()});
        return true;
      }
    return false;
  }
  void keep(const Decision<Args>& decision, const CallOptions& options) {
    const auto& row = *decision.row;
    if (!options.kernel.empty() || decision.device.kind != Device::cpu) return;
    if (row.cost(decision.args) > alone_us) return;
    calls_[next_] = {decision.args, options.device.kind, &row, row.workspace(decision.args), tuning_generation()};
    next_ = (next_ + 1) % calls_.size();
  }

 private:
  struct Call {
    Args args;
    Device::Kind device = Device::automatic;
    const Kernel<Args>* row = nullptr;
    std::size_t workspace = 0;
    unsigned tuning = 0;
  };
  std::array<Call, 8> calls_{};
  std::size_t next_ = 0;
};
template <class Args>
thread_local ShortCalls<Args> short_calls;

}  // namespace

template <class Args>
bool run_short(const Args& args, const CallOptions& options) {
  Args plain = args;
  return normalise(plain) && short_calls<Args>.run(plain, options);
}

template <class Args>
Decision<Args> decide(const Args& args, const CallOptions& options) {
  if (!options.kernel.empty()) find<Args>(options.kernel);  // an unknown name is an error for an empty call too
  if (options.device.kind == Device::cuda) cuda::require_device(options.device.ordinal);
  Decision<Args> decision{.args = args, .layout = {}};
  if (!normalise(decision.args)) return decision;
  decision.device = options.device_memory ? options.device : resolve(decision.args, options);
  if (decision.device.kind == Device::cuda) {
    cuda::require_device(decision.device.ordinal);
    require_code(decision.device.ordinal);
    if (!options.device_memory) {
      decision.layout = cuda::device_layout(decision.args);
    } else if (const std::optional<Args> layout = cuda::packed_layout(decision.args)) {
      decision.layout = *layout;
      decision.packed = true;
    }
  }
  choose_row(decision, options);
  return decision;
}

bool transposes_in_place(const TransposeArgs& args, const CallOptions& options) {
  TransposeArgs p = args;
  p.in_place = true;
  if (p.m != p.n || !normalise(p)) return false;
  const Device device = options.device_memory ? options.device : resolve(p, options);
  if (device.kind == Device::cuda && !options.device_memory) return false;
  return serves(p, device, options.kernel);
}

template <class Args>
bool do_without_workspace(Decision<Args>& decision, const CallOptions& options) {
  if (!options.kernel.empty() || decision.device.kind != Device::cuda) return false;
  const std::size_t bytes = decision.row->workspace(seen_by_row(decision, options));
  if (bytes == 0 || !make_strict(decision.args)) return false;
  make_strict(decision.layout);
  if (options.log)
    (*options.log)("cuda:" + std::to_string(decision.device.ordinal) + " has no " + std::to_string(bytes) +
                   " bytes for the workspace of " + decision.row->name + ": strict precision instead");
  choose_row(decision, options);
  return true;
}

template <class Args>
void execute(const Decision<Args>& decision, const CallOptions& options) {
  const auto& row = *decision.row;
  if (decision.device.kind == Device::cpu) {
    const HostWorkspace workspace(row.workspace(decision.args));
    return row.run(decision.args, Context{.workspace = workspace.data(), .threads = num_threads()});
  }
  const int device = decision.device.ordinal;
  if (decision.packed)
    return cuda::run_on_packed_operands<Args>(decision.args, decision.layout, device, options.stream,
                                              [&](const Args& packed) { run_on_device(row, packed, device, options); });
  if (options.device_memory) return run_on_device(row, decision.args, device, options);
  cuda::run_on_host_operands(*decision.panels, decision.args, decision.layout, device, options.stream, options.log);
}

template <class Args>
void run(const Args& args, const CallOptions& options) {
  if (run_short(args, options)) return;
  const ThreadCount threads;  // one figure for the rules and the kernel, whatever other threads set meanwhile
  Decision<Args> decision = decide(args, options);
  if (!decision.row) return;
  short_calls<Args>.keep(decision, options);
  try {
    execute(decision, options);
  } catch (const OutOfMemory&) {
    if (!do_without_workspace(decision, options)) throw;
    execute(decision, options);
  }
}

#define FL_INSTANTIATE(Args)                                        \
  template void run(const Args&, const CallOptions&);               \
  template bool run_short(const Args&, const CallOptions&);         \
  template Decision<Args> decide(const Args&, const CallOptions&);  \
  template void execute(const Decision<Args>&, const CallOptions&); \
  template bool do_without_workspace(Decision<Args>&, const CallOptions&);
FL_INSTANTIATE(SgemmArgs)
FL_INSTANTIATE(SgemvArgs)
FL_INSTANTIATE(TransposeArgs)
#undef FL_INSTANTIATE

}  // namespace fl
