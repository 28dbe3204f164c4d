#include "run/run.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/call_cache.h"
#include "core/errors.h"
#include "core/lazy.h"
#include "core/normalise.h"
#include "core/operations.h"
#include "cost/cpu_cost.h"
#include "device/device.h"
#include "device/hardware.h"
#include "dispatch/call_key.h"
#include "plan/accurate_plan.h"
#include "runtime/host_workspace.h"
#include "runtime/threading.h"
#include "transfer/panel_plan.h"

namespace fl {
namespace {

// ---------------------------------------------------------------- place
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

// A call that must not copy is not worth two copies over the link.
bool stays_on_host(const TransposeArgs& p) { return p.in_place; }
template <class Args>
bool stays_on_host(const Args&) {
  return false;
}

// The device that the call names, its kernel or the environment; `automatic` leaves it to the costs.
template <class Args>
Device named_device(const Args& args, const CallOptions& options) {
  if (options.device_memory || options.device.kind != Device::automatic) return options.device;
  if (!options.kernel.empty())
    return on_cuda(row_named<Args>(options.kernel).needs) ? Device{Device::cuda, 0} : Device{Device::cpu, 0};
  const Device device = device_override().value_or(Device{});
  return device.kind == Device::automatic && stays_on_host(args) ? Device{Device::cpu, 0} : device;
}

template <class Args>
Decision<Args> placed(const Args& args, Device device, const CallOptions& options) {
  Decision<Args> decision{.args = args, .layout = {}, .device = device};
  if (device.kind != Device::cuda) return decision;
  cuda::require_device(device.ordinal);
  require_code(device.ordinal);
  if (!options.device_memory) {
    decision.layout = cuda::device_layout(args);
  } else if (const std::optional<Args> layout = cuda::packed_layout(args)) {
    decision.layout = *layout;
    decision.packed = true;
  }
  return decision;
}

// ---------------------------------------------------------------- choose
template <class Args>
using SharedPlan = std::shared_ptr<const PanelPlan<Args>>;

// The plan of a call on host operands, with the kernel of each of its steps. Making one asks the table about every
// shape among the blocks of every plan that is compared: 0.06 ms for 1024 cubed, 0.24 for 4096 (a Zen 4), a sixth and a
// twelfth of the calls. So each thread keeps its last few. None depends on the number of threads.
template <class Args>
SharedPlan<Args> plan_for(const Args& layout, Device device, std::string_view name) {
  thread_local CallCache<CallKey<Args>, SharedPlan<Args>, 8> recent;
  const Kernel<Args>* const asked = name.empty() ? nullptr : &row_named<Args>(name);
  const CallKey<Args> key(layout, device, 0, asked);
  if (const SharedPlan<Args>* known = recent.find(key)) return *known;
  const KernelFor<Args> kernel_for{[device, asked](const Args& sub) -> const Kernel<Args>& {
                                     return choose(sub, device, asked ? asked->name : std::string_view());
                                   },
                                   &spec_of(device)};
  PanelPlan<Args> plan = plan_panels<Args>(layout, kernel_for);
  plan.kernel_for = kernel_for;
  return recent.keep(key, std::make_shared<const PanelPlan<Args>>(std::move(plan)));
}

template <class Args>
void choose_kernel(Decision<Args>& decision, const CallOptions& options) {
  if (decision.device.kind == Device::cuda && !options.device_memory) {
    decision.panels = plan_for(decision.layout, decision.device, options.kernel);
    decision.kernel = largest_step(*decision.panels).kernel;
  } else {
    decision.kernel = &choose(seen_by_kernel(decision, options), decision.device, options.kernel);
  }
}

template <class Args>
Decision<Args> decide_on(Device device, const Args& args, const CallOptions& options) {
  Decision<Args> decision = placed(args, device, options);
  choose_kernel(decision, options);
  return decision;
}

// No call on the GPU is faster, so most small ones need no plan to be told from those that are.
constexpr double fastest_gpu_call_us = 25;

template <class Args>
Decision<Args> decide_by_cost(const Args& args, const CallOptions& options) {
  const Device cpu{Device::cpu, 0}, gpu{Device::cuda, 0};
  Decision<Args> on_cpu = decide_on(cpu, args, options);
  if (cuda::device_count() == 0 || !available_on(Needs::cuda, gpu.ordinal)) return on_cpu;
  const double cpu_us = estimate_us(*on_cpu.kernel, args, cpu);
  if (cpu_us < fastest_gpu_call_us) return on_cpu;
  const HostLink link = cuda::host_link(gpu.ordinal, num_threads());
  if (estimate_us(*plan_for(cuda::device_layout(args), gpu, {}), link) >= cpu_us) return on_cpu;
  cuda::load_code(gpu.ordinal);  // the estimate went by the code that is expected
  return available_on(Needs::cuda, gpu.ordinal) ? decide_on(gpu, args, options) : on_cpu;
}

template <class Args>
void log_choice(const Decision<Args>& decision, const CallOptions& options) {
  if (!options.log || !options.log_choice) return;
  const Device device = decision.device;
  Args args = seen_by_kernel(decision, options);
  if (decision.panels) args = sub_problem(args, largest_step(*decision.panels).block);
  const std::string where = device.kind == Device::cpu ? "cpu" : "cuda:" + std::to_string(device.ordinal);
  (*options.log)(where + " " + explain(args, device, *decision.kernel));
}

// Only precision="accurate" allows another kernel: the strict ones have to give the same bits every time.
bool make_strict(SgemmArgs& p) { return std::exchange(p.precision, Precision::strict) != Precision::strict; }
template <class Args>
bool make_strict(Args&) {
  return false;
}

// ---------------------------------------------------------------- launch
template <class Args>
void run_on_cpu(const Kernel<Args>& kernel, const Args& args, std::size_t workspace_bytes, int threads) {
  const HostWorkspace workspace(workspace_bytes);
  kernel.run(args, Context{.workspace = workspace.data(), .threads = threads});
}

// The kernels that serve precision="accurate" alone decide on the device who computes. The log says it afterwards.
template <class Args>
bool answers_later(const Decision<Args>& decision, const CallOptions& options) {
  if constexpr (std::is_same_v<Args, SgemmArgs>)
    return options.log && options.log_choice && std::isfinite(decision.args.alpha) &&
           decision.kernel->traits.terms != Terms::none;
  return false;
}

template <class Args>
void log_answer(const Decision<Args>& decision, const CallOptions& options, const unsigned* statuses) {
  if constexpr (std::is_same_v<Args, SgemmArgs>) {
    const Args& args = seen_by_kernel(decision, options);
    const Kernel<Args>& kernel = *decision.kernel;
    const bool bf16x6_fallback = kernel.traits.bf16x6_behind && has_bf16x6_fallback(args);
    (*options.log)("cuda:" + std::to_string(decision.device.ordinal) + " " + kernel.name + ", computed by " +
                   accurate_answer(kernel.traits.terms, bf16x6_fallback, args, statuses));
  }
}

template <class Args>
void run_on_device(const Decision<Args>& decision, const CallOptions& options) {
  cuda::FirstWords left;
  cuda::FirstWords* const wanted = answers_later(decision, options) ? &left : nullptr;
  const int device = decision.device.ordinal;
  if (decision.packed)
    cuda::run_on_packed_operands(*decision.kernel, decision.args, decision.layout, device, options.stream, wanted);
  else cuda::run_on_device_operands(*decision.kernel, decision.args, device, options.stream, wanted);
  if (left.read) log_answer(decision, options, left.words);
}

// ---------------------------------------------------------------- the shortest calls
// An 8x8 product takes 25 ns, what surrounds it took 80. So each thread keeps the kernels of its last calls that are
// done before another thread would wake: their choice depends neither on the number of threads nor on other devices,
// and they run on the calling thread.
constexpr int alone = 1;  // threads

template <class Args>
struct ShortCall {
  const Kernel<Args>* kernel = nullptr;
  std::size_t workspace_bytes = 0;
};
template <class Args>
constinit thread_local CallCache<CallKey<Args>, ShortCall<Args>, 8> short_calls;

template <class Args>
void keep_short(const Args& args, const Decision<Args>& decision, const CallOptions& options) {
  const auto& kernel = *decision.kernel;
  if (!options.kernel.empty() || decision.device.kind != Device::cpu ||
      kernel.cost(decision.args, host_spec()) > alone_us)
    return;
  short_calls<Args>.keep({args, options.device, alone}, {&kernel, kernel.workspace(decision.args)});
}

}  // namespace

template <class Args>
bool run_short(const Args& args, const CallOptions& options) {
  if (!options.kernel.empty() || options.device_memory || (options.log && options.log_choice)) return false;
  const ShortCall<Args>* const known = short_calls<Args>.find({args, options.device, alone});
  if (!known) return false;
  Args plain = args;
  normalise(plain);
  run_on_cpu(*known->kernel, plain, known->workspace_bytes, alone);
  return true;
}

template <class Args>
Decision<Args> decide(const Args& args, const CallOptions& options) {
  if (!options.kernel.empty()) row_named<Args>(options.kernel);  // an unknown name is an error for an empty call too
  if (options.device.kind == Device::cuda) cuda::require_device(options.device.ordinal);
  Args plain = args;
  if (!normalise(plain)) return {.args = plain, .layout = {}};
  const Device device = named_device(plain, options);
  Decision<Args> decision =
      device.kind == Device::automatic ? decide_by_cost(plain, options) : decide_on(device, plain, options);
  log_choice(decision, options);
  return decision;
}

template <class Args>
bool do_without_workspace(Decision<Args>& decision, const CallOptions& options) {
  if (!options.kernel.empty() || decision.device.kind != Device::cuda) return false;
  const std::size_t bytes = decision.kernel->workspace(seen_by_kernel(decision, options));
  if (bytes == 0 || !make_strict(decision.args)) return false;
  make_strict(decision.layout);
  if (options.log)
    (*options.log)("cuda:" + std::to_string(decision.device.ordinal) + " has no " + std::to_string(bytes) +
                   " bytes for the workspace of " + decision.kernel->name + ": strict precision instead");
  choose_kernel(decision, options);
  log_choice(decision, options);
  return true;
}

template <class Args>
void execute(const Decision<Args>& decision, const CallOptions& options) {
  if (decision.device.kind == Device::cpu)
    run_on_cpu(*decision.kernel, decision.args, decision.kernel->workspace(decision.args), num_threads());
  else if (decision.panels)
    cuda::run_on_host_operands(*decision.panels, decision.args, decision.layout, decision.device.ordinal,
                               options.stream, options.log);
  else run_on_device(decision, options);
}

template <class Args>
void decide_and_run(const Args& args, const CallOptions& options) {
  const ThreadCount threads;  // one figure for the rules and the kernel, whatever other threads set meanwhile
  Decision<Args> decision = decide(args, options);
  if (!decision.kernel) return;
  keep_short(args, decision, options);
  try {
    execute(decision, options);
  } catch (const OutOfMemory&) {
    if (!do_without_workspace(decision, options)) throw;
    execute(decision, options);
  }
}

template <class Args>
double expected_us(const Args& args, const CallOptions& options) {
  const Decision<Args> decision = decide(args, options);
  if (!decision.kernel) return 0;
  return estimate_us(*decision.kernel, seen_by_kernel(decision, options), decision.device);
}

bool transposes_in_place(const TransposeArgs& args, const CallOptions& options) {
  TransposeArgs p = args;
  p.in_place = true;
  if (p.m != p.n || !normalise(p)) return false;
  const Device device = named_device(p, options);
  if (device.kind == Device::cuda && !options.device_memory) return false;
  return serves(p, device, options.kernel);
}

#define FL_INSTANTIATE(Args)                                        \
  template bool run_short(const Args&, const CallOptions&);         \
  template double expected_us(const Args&, const CallOptions&);     \
  template void decide_and_run(const Args&, const CallOptions&);    \
  template Decision<Args> decide(const Args&, const CallOptions&);  \
  template void execute(const Decision<Args>&, const CallOptions&); \
  template bool do_without_workspace(Decision<Args>&, const CallOptions&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
