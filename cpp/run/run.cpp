#include "run/run.h"

#include <algorithm>
#include <bit>
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
#include "plan/accurate_answer.h"
#include "plan/accurate_plan.h"
#include "plan/strict_plan.h"
#include "run/constant_operands.h"
#include "runtime/host_workspace.h"
#include "runtime/threading.h"
#include "transfer/device_shares.h"
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

// A plan is for all devices of a call: they have to be alike in what kernels and their costs go by.
void require_alike(const std::vector<int>& devices) {
  const auto kind = [](int device) {
    const DeviceSpec& spec = cuda::device_info(device).spec;
    return std::string(spec.name) + ", compute capability " + std::to_string(spec.compute_capability / 10) + "." +
           std::to_string(spec.compute_capability % 10) + ", " + std::to_string(spec.multiprocessors) +
           " multiprocessors";
  };
  const int first = devices.front();
  for (const int device : devices)
    if (kind(device) != kind(first))
      throw InvalidValue("the devices of one call have to be of one kind, and cuda:" + std::to_string(first) + " is " +
                         kind(first) + ", cuda:" + std::to_string(device) + " " + kind(device) +
                         "; list those that are");
}

// The devices that a call is to run on are there, and "cuda:all" is a list of them.
Device existing(Device device) {
  if (device.kind != Device::cuda) return device;
  const int count = cuda::device_count();
  if (device.set == Device::all && count > 0) {
    device.set = count < 64 ? (uint64_t{1} << count) - 1 : Device::all;
    if (count == 1) device.set = 0;
  }
  if (!device.set || count == 0) {
    cuda::require_device(device.ordinal);
    return device;
  }
  const std::vector<int> devices = ordinals(device);
  for (const int each : devices) cuda::require_device(each);
  require_alike(devices);
  return device;
}

// Memory and streams are those of one device.
void require_one_device(Device device, const CallOptions& options) {
  if (!device.set || (!options.device_memory && !options.stream)) return;
  throw InvalidValue("device='" + device_text(device) + "' is for operands in host memory and no stream; " +
                     (options.device_memory ? "operands in device memory are" : "a stream is") + " on one device");
}

// Both operands of a symmetric product are one on a device, if they are the same numbers. Devices that share a product
// out compute all of it.
SgemmArgs as_shared(SgemmArgs args, Device device, const StoredInputs& stored) {
  args.symmetric = args.symmetric && !device.set && stored[0] == stored[1];
  return args;
}
template <class Args>
const Args& as_shared(const Args& args, Device, const StoredInputs&) {
  return args;
}

template <class Args>
Decision<Args> placed(const Args& args, Device device, const CallOptions& options) {
  Decision<Args> decision{.args = args, .layout = {}, .device = device};
  if (device.kind != Device::cuda) return decision;
  require_code(device.ordinal);
  if (device.set)
    for (const int each : ordinals(device)) require_code(each);
  if (!options.device_memory) {
    decision.layout = cuda::device_layout(as_shared(args, device, options.stored));
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
SharedPlan<Args> plan_for(const Args& layout, Device place, std::string_view name) {
  const Device device{place.kind, place.ordinal};  // the first, for all
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
  (*options.log)(device_text(device) + " " + explain(args, device, *decision.kernel));
}

template <class Args>
bool swaps_operands(const Args&) {
  return false;
}

// Of rows that compute one triangle the accurate ones do where it is faster, and the strict ones where k is not cut, on
// a GPU from some length of k on.
template <class Args>
bool takes_triangle(const Kernel<Args>& kernel, const Args& args) {
  if constexpr (std::is_same_v<Args, SgemmArgs>)
    if (args.symmetric && kernel.traits.triangle) {
      if (!kernel.traits.strict) return computes_triangle(args);
      if (on_cuda(kernel.needs) && args.k < TRIANGLE_LEAST_K) return false;
      return !kernel.depth || kernel.depth(args) >= args.k;
    }
  return false;
}

// Whether a call by panels computes the blocks of one triangle.
template <class Args>
bool mirrors(const Decision<Args>& decision) {
  return decision.panels && std::ranges::any_of(decision.panels->steps, &PanelStep<Args>::mirrored);
}

// Only precision="accurate" allows another kernel: the others have to give the same bits every time.
bool make_strict(SgemmArgs& p) {
  if (p.precision != Precision::accurate) return false;
  p.precision = Precision::strict;
  return true;
}
template <class Args>
bool make_strict(Args&) {
  return false;
}

// Of a call by panels. Several devices end with the last of them.
template <class Args>
double expected_us(const Decision<Args>& decision, const HostLink& link) {
  if (!decision.device.set) return estimate_us(*decision.panels, link);
  const int devices = std::popcount(decision.device.set);
  double us = 0;
  for (const DeviceShare<Args>& share : share_out(*decision.panels, decision.layout, devices, true))
    us = std::max(us, estimate_us(share.plan, link));
  return us;
}

// ---------------------------------------------------------------- launch
template <class Args>
void run_on_cpu(const Kernel<Args>& kernel, const Args& args, std::size_t workspace_bytes, int threads) {
  const HostWorkspace workspace(workspace_bytes);
  kernel.run(args, Context{.workspace = workspace.data(), .threads = threads});
}

template <class Args>
Args with_constant_operand(Args args, const CallOptions& options) {
  if constexpr (std::is_same_v<Args, SgemmArgs>)
    if (options.constant_operand) options.constant_operand->replace_by_copy(args);
  return args;
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
bool run_on_constant_operand(const Decision<Args>& decision, const CallOptions& options) {
  if constexpr (std::is_same_v<Args, SgemmArgs>)
    return options.constant_operand && !decision.packed &&
           options.constant_operand->run(*decision.kernel, decision.args, decision.device.ordinal, options.stream);
  return false;
}

template <class Args>
void run_on_device(const Decision<Args>& decision, const CallOptions& options) {
  if (run_on_constant_operand(decision, options)) return;
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
void keep_short(const Decision<Args>& decision, const CallOptions& options) {
  const auto& kernel = *decision.kernel;
  if (!options.kernel.empty() || decision.device.kind != Device::cpu ||
      kernel.cost(decision.args, host_spec()) > alone_us)
    return;
  short_calls<Args>.keep({decision.args, options.device, alone}, {&kernel, kernel.workspace(decision.args)});
}

}  // namespace

template <class Args>
bool run_short(const Args& args, const CallOptions& options) {
  if (!options.kernel.empty() || options.device_memory || options.constant_operand ||
      (options.log && options.log_choice))
    return false;
  Args plain = args;
  if (!normalise(plain)) return false;
  const ShortCall<Args>* const known = short_calls<Args>.find({plain, options.device, alone});
  if (!known) return false;
  run_on_cpu(*known->kernel, plain, known->workspace_bytes, alone);
  return true;
}

template <class Args>
Decision<Args> decide(const Args& args, const CallOptions& options) {
  if (!options.kernel.empty()) row_named<Args>(options.kernel);  // an unknown name is an error for an empty call too
  require_one_device(existing(options.device), options);
  Args plain = args;
  if (!normalise(plain)) return {.args = plain, .layout = {}};
  const Device device = existing(named_device(plain, options));
  require_one_device(device, options);
  Decision<Args> decision =
      device.kind == Device::automatic ? decide_by_cost(plain, options) : decide_on(device, plain, options);
  decision.stored = options.stored;
  if (swaps_operands(args)) std::swap(decision.stored[0], decision.stored[1]);
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
    (*options.log)(device_text(decision.device) + " has no " + std::to_string(bytes) + " bytes for the workspace of " +
                   decision.kernel->name + ": strict precision instead");
  choose_kernel(decision, options);
  log_choice(decision, options);
  return true;
}

template <class Args>
void execute(const Decision<Args>& decision, const CallOptions& options) {
  require_one_device(decision.device, options);
  if (decision.device.kind == Device::cpu)
    run_on_cpu(*decision.kernel, with_constant_operand(decision.args, options),
               decision.kernel->workspace(decision.args), num_threads());
  else if (decision.panels)
    cuda::run_on_host_operands(*decision.panels, decision.args, decision.stored, decision.layout,
                               ordinals(decision.device), options.stream, options.log);
  else run_on_device(decision, options);
}

// What is kept of constant operands only saves time, so it makes room. False if there was nothing, or too little.
template <class Args>
static bool execute_without_constant_operands(const Decision<Args>& decision, CallOptions options) {
  if (decision.device.kind != Device::cuda) return false;
  const int device = decision.device.ordinal;
  if (!std::exchange(options.constant_operand, nullptr) && constant_operand_bytes(device) == 0) return false;
  drop_constant_operands(device);
  try {
    execute(decision, options);
    return true;
  } catch (const OutOfMemory&) {
    return false;
  }
}

template <class Args>
void decide_and_run(const Args& args, const CallOptions& options) {
  const ThreadCount threads;  // one figure for the rules and the kernel, whatever other threads set meanwhile
  Decision<Args> decision = decide(args, options);
  if (!decision.kernel) return;
  keep_short(decision, options);
  try {
    execute(decision, options);
  } catch (const OutOfMemory&) {
    if (execute_without_constant_operands(decision, options)) return;
    if (!do_without_workspace(decision, options)) throw;
    execute(decision, options);
  }
}

// Who asks before each call asks about the same few again and again, so each thread remembers its last answers.
template <class Args>
Device device_of(const Args& args, const CallOptions& options) {
  const ThreadCount threads;
  const Decision<Args> decision = decide(args, options);
  return decision.kernel ? decision.device : options.device;
}

template <class Args>
Forecast forecast(const Args& args, const CallOptions& options) {
  const ThreadCount threads;
  const Decision<Args> decision = decide(args, options);
  if (!decision.kernel) return {};
  Forecast result{.device = decision.device, .kernel = decision.kernel->name, .others = {}};
  Args seen = seen_by_kernel(decision, options);
  if (decision.panels) {
    result.steps = int64_t(decision.panels->steps.size());
    result.us = expected_us(decision, cuda::host_link(decision.device.ordinal, threads.count()));
    seen = sub_problem(seen, largest_step(*decision.panels).block);
  } else {
    result.us = estimate_us(*decision.kernel, seen, decision.device);
  }
  result.triangle = takes_triangle(*decision.kernel, seen) || mirrors(decision);
  result.others = not_taken(seen, decision.device, *decision.kernel);
  return result;
}

template <class Args>
double expected_us(const Args& args, const CallOptions& options) {
  const auto ask = [&] {
    const Decision<Args> decision = decide(args, options);
    return decision.kernel ? estimate_us(*decision.kernel, seen_by_kernel(decision, options), decision.device) : 0;
  };
  if (!options.device_memory || !options.kernel.empty()) return ask();  // other devices' costs decide too
  thread_local CallCache<CallKey<Args>, double, 32> recent;
  const CallKey<Args> key(args, options.device, num_threads());
  if (const double* const known = recent.find(key)) return *known;
  return recent.keep(key, ask());
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
  template Device device_of(const Args&, const CallOptions&);       \
  template Forecast forecast(const Args&, const CallOptions&);      \
  template void decide_and_run(const Args&, const CallOptions&);    \
  template Decision<Args> decide(const Args&, const CallOptions&);  \
  template void execute(const Decision<Args>&, const CallOptions&); \
  template bool do_without_workspace(Decision<Args>&, const CallOptions&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
