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
  if (!options.log) return;
  const std::string where = device.kind == Device::cpu ? "cpu" : "cuda:" + std::to_string(device.ordinal);
  (*options.log)(where + " " + explain(args, device, row));
}

template <class Args>
void run_on_cpu(const Args& args, const CallOptions& options) {
  const ThreadCount threads;  // one figure for the rules and the kernel, whatever other threads set meanwhile
  const Device cpu{Device::cpu, 0};
  const auto& row = choose(args, cpu, options.kernel);
  log_choice(options, args, cpu, row);
  const HostWorkspace workspace(row.workspace(args));
  row.run(args, Context{.workspace = workspace.data(), .threads = threads.count()});
}

}  // namespace

template <class Args>
void run(Args args, const CallOptions& options) {
  if (!options.kernel.empty()) find<Args>(options.kernel);  // an unknown name is an error for an empty call too
  if (options.device.kind == Device::cuda) cuda::require_device(options.device.ordinal);
  if (!normalise(args)) return;
  if (options.device_memory) {
    const auto& row = choose(args, options.device, options.kernel);
    log_choice(options, args, options.device, row);
    return cuda::run_on_device_operands(row, args, options.device.ordinal, options.stream);
  }
  const Device device = resolve(args, options);
  if (device.kind == Device::cpu) return run_on_cpu(args, options);
  cuda::require_device(device.ordinal);
  const auto layout = cuda::device_layout(args);
  const auto& row = choose(layout, device, options.kernel);
  log_choice(options, layout, device, row);
  cuda::run_on_host_operands(row, args, layout, device.ordinal, options.stream);
}

template void run(SgemmArgs, const CallOptions&);
template void run(SgemvArgs, const CallOptions&);
template void run(TransposeArgs, const CallOptions&);

}  // namespace fl
