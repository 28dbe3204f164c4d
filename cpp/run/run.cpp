#include "run/run.h"

#include <string>
#include <utility>

#include "core/call_cache.h"
#include "core/normalise.h"
#include "cost/cpu_cost.h"
#include "device/host_calls.h"
#include "device/launches.h"
#include "dispatch/call_key.h"
#include "run/constant_operands.h"
#include "run/forecast.h"
#include "run/placement.h"
#include "run/sgemm_extras.h"
#include "runtime/call_watch.h"
#include "runtime/host_memory.h"
#include "runtime/per_thread.h"
#include "runtime/threading.h"

namespace fl {
namespace {

// ---------------------------------------------------------------- each way to run a call
template <class Args>
void run_on_cpu(const Kernel<Args>& kernel, const Args& args, std::size_t workspace_bytes, int threads,
                Watch* watch = nullptr) {
  const HostWorkspace workspace(workspace_bytes);
  kernel.run(args, Context{.workspace = workspace.data(), .threads = threads, .watch = watch});
}

template <class Args>
void run_decided(const CpuRun<Args>& cpu, const CallOptions& options) {
  run_on_cpu(*cpu.kernel, Args(with_constant_operand(cpu.args, options)), cpu.kernel->workspace(cpu.args),
             num_threads(), CallWatch::current());
}

template <class Launched, class Start>
void with_answer_logged(const Launched& launch, const CallOptions& options, Start&& start) {
  cuda::StatusWords left;
  start(answers_later(launch, options) ? &left : nullptr);
  if (left.read) log_answer(launch, launch.ordinal, options, left.words);
}

template <class Args>
void run_decided(const Launch<Args>& launch, const CallOptions& options) {
  if (run_on_constant_operand(launch, options)) return;
  with_answer_logged(launch, options, [&](cuda::StatusWords* left) {
    cuda::run_on_device_operands(*launch.kernel, launch.args, launch.ordinal, options.stream, left);
  });
}

template <class Args>
void run_decided(const PackedLaunch<Args>& launch, const CallOptions& options) {
  with_answer_logged(launch, options, [&](cuda::StatusWords* left) {
    cuda::run_on_packed_operands(*launch.kernel, launch.caller, launch.args, launch.ordinal, options.stream, left);
  });
}

template <class Args>
void run_decided(const Panels<Args>& panels, const CallOptions& options) {
  require_one_device(panels.devices, options);
  cuda::run_on_host_operands(*panels.plan, panels.host, panels.args, ordinals(panels.devices), options.stream,
                             options.log);
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
using KnownShort = CallCache<CallKey<Args>, ShortCall<Args>, 8>;

template <class Args>
bool run_known(Args args, const CallOptions& options) {
  if (!normalise(args)) return false;
  auto* const calls = per_thread<KnownShort<Args>>();
  const ShortCall<Args>* const known = calls ? calls->find({args, options.device, alone}) : nullptr;
  if (!known) return false;
  run_on_cpu(*known->kernel, args, known->workspace_bytes, alone);
  return true;
}

template <class Args>
void keep_short(const Decision<Args>& decision, const CallOptions& options) {
  const auto* const cpu = std::get_if<CpuRun<Args>>(&decision);
  if (!options.kernel.empty() || !cpu || cpu->kernel->cost(cpu->args, host_spec()) > alone_us) return;
  if (auto* const calls = per_thread<KnownShort<Args>>())
    calls->keep({cpu->args, options.device, alone}, {cpu->kernel, cpu->kernel->workspace(cpu->args)});
}

}  // namespace

template <class Args>
bool run_short(const Args& args, const CallOptions& options) {
  if (!options.kernel.empty() || options.device_memory || options.constant_operand ||
      (options.log && options.log_choice))
    return false;
  return as_computed(args, options, [](const auto& p, const CallOptions& computed) { return run_known(p, computed); });
}

template <class Args>
void execute(const Decision<Args>& decision, const CallOptions& options) {
  std::visit([&](const auto& kind) { run_decided(kind, options); }, decision);
}

// A matrix-vector product reads no addend but y.
static void copy_addend(const SgemmArgs& p, CallOptions options) {
  if (!is_vector_product(p, options) || !p.addend.data || p.beta == 0.0f) return;
  options.log = nullptr;
  const ConstMatrix transposed{p.addend.data, p.addend.cs, p.addend.rs, p.addend.bs};
  decide_and_run(TransposeArgs{.m = p.n, .n = p.m, .batch = p.batch, .a = transposed, .b = p.c}, options);
}
static void copy_addend(const auto&, const CallOptions&) {}

template <class Args>
bool drop_kept_operands(Decision<Args>& decision, CallOptions& options) {
  const Device device = place_of(decision);
  if (device.kind != Device::cuda) return false;
  if (!std::exchange(options.constant_operand, nullptr) && constant_operand_bytes(device.ordinal) == 0) return false;
  drop_constant_operands(device.ordinal);
  return true;
}

template <class Args>
bool do_without_workspace(Decision<Args>& decision, CallOptions& options) {
  if (!options.kernel.empty() || std::holds_alternative<CpuRun<Args>>(decision)) return false;
  const Kernel<Args>& kernel = *chosen(decision).kernel;
  const std::size_t bytes = kernel.workspace(chosen(decision).args);
  if (bytes == 0) return false;
  if (!std::visit([](auto& kind) { return make_strict(kind.given()) | make_strict(kind.args); }, decision))
    return false;
  if (options.log)
    (*options.log)(device_text(place_of(decision)) + " has no " + std::to_string(bytes) +
                   " bytes for the workspace of " + kernel.name + ": strict precision instead");
  choose_again(decision, options);
  log_choice(decision, options);
  return true;
}

template <class Args>
void decide_and_run(const Args& args, const CallOptions& given) {
  const ThreadCount threads;  // one figure for the rules and the kernel, whatever other threads set meanwhile
  copy_addend(args, given);
  as_computed(args, given, [](const auto& problem, CallOptions options) {
    auto decision = decide(problem, options);
    if (!decision) return;
    log_choice(*decision, options);
    keep_short(*decision, options);
    with_concessions(*decision, options, [&] { execute(*decision, options); });
  });
}

bool transposes_in_place(const TransposeArgs& args, const CallOptions& options) {
  TransposeArgs p = args;
  p.in_place = true;
  if (p.m != p.n || !normalise(p)) return false;
  const Device device = placement<TransposeArgs>(options);
  if (device.kind == Device::cuda && !options.device_memory) return false;
  return serves(p, device, options.kernel);
}

#define FL_INSTANTIATE(Args)                                         \
  template bool run_short(const Args&, const CallOptions&);          \
  template void decide_and_run(const Args&, const CallOptions&);     \
  template bool drop_kept_operands(Decision<Args>&, CallOptions&);   \
  template bool do_without_workspace(Decision<Args>&, CallOptions&); \
  template void execute(const Decision<Args>&, const CallOptions&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
