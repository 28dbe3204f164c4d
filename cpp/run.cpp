#include "run.h"

#include <cstdlib>
#include <optional>

#include "device.h"
#include "errors.h"
#include "host_workspace.h"
#include "normalise.h"
#include "threading.h"

namespace fl {
namespace {

// Bytes that cross the host link if a call on host operands runs on the GPU.
double transfer_bytes(const SgemmArgs& p) {
  const double c = double(p.m) * double(p.n) * (p.beta == 0.0f ? 1 : 2);
  const double a = double(p.m) * double(p.k), b = double(p.k) * double(p.n);
  return 4.0 * (c * double(p.batch) + a * (p.a.bs ? double(p.batch) : 1) + b * (p.b.bs ? double(p.batch) : 1));
}
double transfer_bytes(const SgemvArgs& p) { return 4.0 * double(p.m) * double(p.n) * (p.a.bs ? double(p.batch) : 1); }
double transfer_bytes(const TransposeArgs& p) { return 8.0 * double(p.m) * double(p.n) * double(p.batch); }

// Copies through pinned staging run at about 10 GB/s in each direction, after about 50 us of fixed cost (H200 host).
double transfer_us(double bytes) { return 50.0 + bytes / 10e3; }

std::optional<Device> device_override() {
  static const std::optional<Device> device = []() -> std::optional<Device> {
    const char* text = std::getenv("FASTLINALG_DEVICE");
    if (!text || !*text) return std::nullopt;
    return parse_device(text);
  }();
  return device;
}

template <class Args>
Device cheaper_device(const Args& args) {
  if (cuda::device_count() == 0) return {Device::cpu, 0};
  const Device cpu{Device::cpu, 0}, gpu{Device::cuda, 0};
  const auto layout = cuda::device_layout(args);
  const double gpu_us = choose(layout, gpu).cost(layout) + transfer_us(transfer_bytes(args));
  return gpu_us < choose(args, cpu).cost(args) ? gpu : cpu;
}

template <class Args>
Device resolve(const Args& args, const CallOptions& options) {
  Device device = options.device;
  if (device.kind == Device::automatic && !options.kernel.empty())
    return on_cuda(find<Args>(options.kernel).needs) ? Device{Device::cuda, 0} : Device{Device::cpu, 0};
  if (device.kind == Device::automatic) device = device_override().value_or(device);
  if (device.kind == Device::automatic) device = cheaper_device(args);
  return device;
}

template <class Args>
void log_choice(const CallOptions& options, const Args& args, Device device, const Kernel<Args>& row) {
  const std::string where = device.kind == Device::cpu ? "cpu" : "cuda:" + std::to_string(device.ordinal);
  (*options.log)(where + " " + explain(args, device, row));
}

template <class Args>
const Args& seen_by_row(const Decision<Args>& decision, const CallOptions& options) {
  return decision.device.kind == Device::cuda && !options.device_memory ? decision.layout : decision.args;
}

template <class Args>
void choose_row(Decision<Args>& decision, const CallOptions& options) {
  const Args& args = seen_by_row(decision, options);
  decision.row = &choose(args, decision.device, options.kernel);
  if (options.log && options.log_choice) log_choice(options, args, decision.device, *decision.row);
}

template <class Args>
void execute(const Decision<Args>& decision, const CallOptions& options) {
  const auto& row = *decision.row;
  if (decision.device.kind == Device::cpu) {
    const HostWorkspace workspace(row.workspace(decision.args));
    return row.run(decision.args, Context{.workspace = workspace.data(), .threads = num_threads()});
  }
  const int device = decision.device.ordinal;
  if (options.device_memory) return cuda::run_on_device_operands(row, decision.args, device, options.stream);
  cuda::run_on_host_operands(row, decision.args, decision.layout, device, options.stream);
}

// Only precision="accurate" allows another row: the strict ones have to give the same bits every time.
bool make_strict(SgemmArgs& p) {
  if (p.precision == Precision::strict) return false;
  p.precision = Precision::strict;
  return true;
}
bool make_strict(SgemvArgs&) { return false; }
bool make_strict(TransposeArgs&) { return false; }

}  // namespace

template <class Args>
Decision<Args> decide(const Args& args, const CallOptions& options) {
  if (!options.kernel.empty()) find<Args>(options.kernel);  // an unknown name is an error for an empty call too
  if (options.device.kind == Device::cuda) cuda::require_device(options.device.ordinal);
  Decision<Args> decision{.args = args, .layout = {}};
  if (!normalise(decision.args)) return decision;
  decision.device = options.device_memory ? options.device : resolve(decision.args, options);
  if (decision.device.kind == Device::cuda && !options.device_memory) {
    cuda::require_device(decision.device.ordinal);
    decision.layout = cuda::device_layout(decision.args);
  }
  choose_row(decision, options);
  return decision;
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
void run(const Args& args, const CallOptions& options) {
  const ThreadCount threads;  // one figure for the rules and the kernel, whatever other threads set meanwhile
  Decision<Args> decision = decide(args, options);
  if (!decision.row) return;
  try {
    execute(decision, options);
  } catch (const OutOfMemory&) {
    if (!do_without_workspace(decision, options)) throw;
    execute(decision, options);
  }
}

#define FL_INSTANTIATE(Args)                                       \
  template void run(const Args&, const CallOptions&);              \
  template Decision<Args> decide(const Args&, const CallOptions&); \
  template bool do_without_workspace(Decision<Args>&, const CallOptions&);
FL_INSTANTIATE(SgemmArgs)
FL_INSTANTIATE(SgemvArgs)
FL_INSTANTIATE(TransposeArgs)
#undef FL_INSTANTIATE

}  // namespace fl
