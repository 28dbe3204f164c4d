#include "run/decision.h"

#include <bit>
#include <type_traits>
#include <utility>

#include "core/call_cache.h"
#include "core/normalise.h"
#include "core/stored.h"
#include "device/device_info.h"
#include "device/hardware.h"
#include "device/host_calls.h"
#include "device/launches.h"
#include "dispatch/call_key.h"
#include "run/placement.h"
#include "runtime/per_thread.h"
#include "runtime/threading.h"
#include "transfer/device_shares.h"

namespace fl {
namespace {

template <class Args>
using SharedPlan = std::shared_ptr<const PanelPlan<Args>>;

// The plan of a call on host operands, with the kernel of each of its steps. Making one asks the table about every
// shape among the blocks of every plan that is compared: 0.06 ms for 1024 cubed, 0.24 for 4096 (a Zen 4), a sixth and a
// twelfth of the calls. So each thread keeps its last few. None depends on the number of threads.
template <class Args>
SharedPlan<Args> plan_for(const Args& layout, Device place, std::string_view name) {
  const Device device{place.kind, place.ordinal};  // the first, for all
  auto* const recent = per_thread<CallCache<CallKey<Args>, SharedPlan<Args>, 8>>();
  const Kernel<Args>* const asked = name.empty() ? nullptr : &row_named<Args>(name);
  const CallKey<Args> key(layout, device, 0, asked);
  if (const SharedPlan<Args>* known = recent ? recent->find(key) : nullptr) return *known;
  const KernelFor<Args> kernel_for{[device, asked](const Args& sub) -> const Kernel<Args>& {
                                     return choose(sub, device, asked ? asked->name : std::string_view());
                                   },
                                   &spec_of(device)};
  PanelPlan<Args> plan = plan_panels<Args>(layout, kernel_for);
  plan.kernel_for = kernel_for;
  const auto made = std::make_shared<const PanelPlan<Args>>(std::move(plan));
  return recent ? recent->keep(key, made) : made;
}

template <class Kind>
void choose_kernel(Kind& kind, std::string_view name) {
  kind.kernel = &choose(kind.args, kind.device(), name);
}
template <class Args>
void choose_kernel(Panels<Args>& panels, std::string_view name) {
  panels.plan = plan_for(panels.args, panels.devices, name);
  panels.kernel = largest_step(*panels.plan).kernel;
}

template <class Args>
CpuRun<Args> decide_on_cpu(const Args& args, const CallOptions& options) {
  CpuRun<Args> run{{nullptr, args}};
  choose_kernel(run, options.kernel);
  return run;
}

// A product of operands in 16 bits that some kernel is for.
bool is_read_as_it_lies(const SgemmArgs& p, Device device, std::string_view name) {
  return any_in_16_bits(p.stored) && serves(p, device, name);
}
constexpr bool is_read_as_it_lies(const auto&, Device, std::string_view) { return false; }

template <class Args>
Decision<Args> decide_on_device(int device, const Args& args, const CallOptions& options) {
  require_code(device);
  const std::optional<Args> packed = cuda::packed_layout(args);
  Launch<Args> launch{{nullptr, args}, device};
  if (!packed || is_read_as_it_lies(args, launch.device(), options.kernel)) {
    choose_kernel(launch, options.kernel);
    return launch;
  }
  PackedLaunch<Args> copies{{nullptr, *packed}, args, device};
  choose_kernel(copies, options.kernel);
  copies.args = packed_for(*copies.kernel, args, *packed);
  if (copies.args != args) return copies;
  launch.kernel = copies.kernel;
  return launch;
}

// Devices that share a symmetric product out compute all of it.
SgemmArgs as_loaded(SgemmArgs args, Device devices) {
  args.symmetric = args.symmetric && !devices.set;
  return args;
}
const auto& as_loaded(const auto& args, Device) { return args; }

// Whether one of several devices is expected to be as fast as all. By fixed figures, as what is computed depends on it.
template <class Args>
bool is_enough(const Panels<Args>& panels) {
  return estimate_us(*panels.plan, nominal_link) <=
         estimate_us(*panels.plan, panels.args, std::popcount(panels.devices.set), nominal_link);
}

template <class Args>
Panels<Args> decide_by_panels(Device devices, const Args& args, const CallOptions& options) {
  for (const int device : ordinals(devices)) require_code(device);
  Panels<Args> panels{{nullptr, cuda::device_layout(as_loaded(args, devices))}, args, devices};
  choose_kernel(panels, options.kernel);
  if (!devices.or_one || !is_enough(panels)) return panels;
  return decide_by_panels({Device::cuda, devices.ordinal}, args, options);
}

// A call that must not copy is not worth two copies over the link.
bool stays_on_host(const TransposeArgs& p) { return p.in_place; }
bool stays_on_host(const auto&) { return false; }

// No call on the GPU is faster, so most small ones need no plan to be told from those that are.
constexpr double fastest_gpu_call_us = 25;

template <class Args>
Decision<Args> decide_by_cost(const Args& args, const CallOptions& options) {
  const Device gpu{Device::cuda, 0};
  CpuRun<Args> on_cpu = decide_on_cpu(args, options);
  if (stays_on_host(args) || cuda::device_count() == 0 || !available_on(Needs::cuda, gpu.ordinal)) return on_cpu;
  const double cpu_us = estimate_us(*on_cpu.kernel, args, on_cpu.device());
  if (cpu_us < fastest_gpu_call_us) return on_cpu;
  const HostLink link = cuda::host_link(gpu.ordinal, num_threads());
  if (estimate_us(*plan_for(cuda::device_layout(args), gpu, {}), link) >= cpu_us) return on_cpu;
  cuda::load_code(gpu.ordinal);  // the estimate went by the code that is expected
  if (!available_on(Needs::cuda, gpu.ordinal)) return on_cpu;
  return decide_by_panels(gpu, args, options);
}

}  // namespace

// A product with a vector has the kernel of the float32 matrix, with the same order of sums where that reads 16 bits.
template <class Args>
Args packed_for(const Kernel<Args>& kernel, const Args& caller, const Args& packed) {
  if constexpr (std::is_same_v<Args, SgemvArgs>) {
    SgemvArgs direct = packed;
    direct.a = caller.a, direct.stored[0] = caller.stored[0];
    if (kernel.legal(direct) == nullptr) return direct;
  }
  return packed;
}

template <class Args>
void choose_again(Decision<Args>& decision, const CallOptions& options) {
  const Args given = std::visit([](auto& kind) { return kind.given(); }, decision);
  if (auto* const cpu = std::get_if<CpuRun<Args>>(&decision)) choose_kernel(*cpu, options.kernel);
  else if (auto* const panels = std::get_if<Panels<Args>>(&decision)) choose_kernel(*panels, options.kernel);
  else decision = decide_on_device(place_of(decision).ordinal, given, options);
}

template <class Args>
std::optional<Decision<Args>> decide(const Args& args, const CallOptions& options) {
  if (!options.kernel.empty()) row_named<Args>(options.kernel);  // an unknown name is an error for an empty call too
  Args plain = args;
  if (!normalise(plain)) {
    resolve_device(options.device, options);  // and so is a device that is not there
    return std::nullopt;
  }
  const Device device = placement<Args>(options);
  if (device.kind == Device::cpu) return decide_on_cpu(plain, options);
  if (options.device_memory) return decide_on_device(device.ordinal, plain, options);
  if (device.kind == Device::automatic) return decide_by_cost(plain, options);
  return decide_by_panels(device, plain, options);
}

#define FL_INSTANTIATE(Args)                                                      \
  template std::optional<Decision<Args>> decide(const Args&, const CallOptions&); \
  template Args packed_for(const Kernel<Args>&, const Args&, const Args&);        \
  template void choose_again(Decision<Args>&, const CallOptions&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
