#include "run/forecast.h"

#include <algorithm>
#include <bit>

#include "core/call_cache.h"
#include "device/hardware.h"
#include "device/host_calls.h"
#include "dispatch/call_key.h"
#include "run/sgemm_extras.h"
#include "runtime/per_thread.h"
#include "runtime/said_lines.h"
#include "runtime/threading.h"
#include "transfer/device_shares.h"

namespace fl {
namespace {

// The call that the kernel computes, of panels the largest step.
template <class Args>
Args largest_part(const Decision<Args>& decision) {
  const Args& args = chosen(decision).args;
  const auto* const panels = std::get_if<Panels<Args>>(&decision);
  return panels ? sub_problem(args, largest_step(*panels->plan).block) : args;
}

template <class Args>
double panels_us(const Panels<Args>& panels) {
  const HostLink link = cuda::host_link(panels.devices.ordinal, num_threads());
  if (!panels.devices.set) return estimate_us(*panels.plan, link);
  return estimate_us(*panels.plan, panels.args, std::popcount(panels.devices.set), link);
}

template <class Args>
double kernel_us(const Decision<Args>& decision) {
  return estimate_us(*chosen(decision).kernel, chosen(decision).args, place_of(decision));
}

template <class Args>
Forecast forecast_of(const Decision<Args>& decision) {
  const Kernel<Args>& kernel = *chosen(decision).kernel;
  const Args part = largest_part(decision);
  Forecast result{.op = Operation<Args>::name,
                  .device = place_of(decision),
                  .kernel = kernel.name,
                  .blurb = kernel.blurb,
                  .others = {}};
  result.triangle = takes_triangle(kernel, part);
  result.others = not_taken(part, result.device, kernel);
  if (const auto* const panels = std::get_if<Panels<Args>>(&decision)) {
    result.steps = int64_t(panels->plan->steps.size());
    result.us = panels_us(*panels);
    result.triangle |= std::ranges::any_of(panels->plan->steps, &PanelStep<Args>::mirrored);
  } else {
    result.us = kernel_us(decision);
  }
  return result;
}

// What is asked of it; nothing where nothing is computed.
template <class Args, class Ask>
auto of_decision(const Args& args, const CallOptions& options, Ask&& ask) {
  return as_computed(args, options, [&](const auto& problem, const CallOptions& computed) {
    const auto decision = decide(problem, computed);
    return decision ? ask(*decision) : decltype(ask(*decision)){};
  });
}

}  // namespace

template <class Args>
void log_choice(const Decision<Args>& decision, const CallOptions& options) {
  if (!options.log || !options.log_choice) return;
  const Args part = largest_part(decision);
  const Kernel<Args>& kernel = *chosen(decision).kernel;
  const Device device = place_of(decision);
  (*options.log)(device_text(device) + " " + explain(part, device, kernel));
  if (device.kind != Device::cuda) return;
  static constinit SaidLines said;
  const std::string compiled = compiled_code_on(device.ordinal);
  if (!compiled.empty() && said.add(compiled)) (*options.log)(compiled);
}

template <class Args>
Device device_of(const Args& args, const CallOptions& options) {
  const ThreadCount threads;
  return as_computed(args, options, [](const auto& problem, const CallOptions& computed) {
    const auto decision = decide(problem, computed);
    if (!decision) return computed.device;
    log_choice(*decision, computed);
    return place_of(*decision);
  });
}

template <class Args>
Forecast forecast(const Args& args, const CallOptions& options) {
  const ThreadCount threads;
  return of_decision(args, options, [](const auto& decision) { return forecast_of(decision); });
}

// Who asks before each call asks about the same few again and again, so each thread remembers its last answers.
template <class Args>
double expected_us(const Args& args, const CallOptions& options) {
  const auto ask = [&] { return of_decision(args, options, [](const auto& decision) { return kernel_us(decision); }); };
  if (!options.device_memory || !options.kernel.empty()) return ask();  // other devices' costs decide too
  auto* const recent = per_thread<CallCache<CallKey<Args>, double, 32>>();
  if (!recent) return ask();
  const CallKey<Args> key(args, options.device, num_threads());
  if (const double* const known = recent->find(key)) return *known;
  return recent->keep(key, ask());
}

#define FL_INSTANTIATE(Args)                                           \
  template void log_choice(const Decision<Args>&, const CallOptions&); \
  template Device device_of(const Args&, const CallOptions&);          \
  template Forecast forecast(const Args&, const CallOptions&);         \
  template double expected_us(const Args&, const CallOptions&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
