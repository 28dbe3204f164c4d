// The C interface: what there is, and the settings of the process.
#include <mutex>
#include <set>
#include <string>

#include "capi/check.h"
#include "capi/errors.h"
#include "core/operations.h"
#include "core/text.h"
#include "device/device_info.h"
#include "device/hardware.h"
#include "dispatch/tuning.h"
#include "run/inspection.h"
#include "runtime/fork.h"
#include "runtime/threading.h"

namespace fl {
namespace {

struct InternedTexts {
  std::mutex mutex;
  std::set<std::string> texts;
};

// A copy of `text` that lives as long as the library. There are few different reasons why a kernel is not available.
const char* intern(const std::string& text) {
  static constinit PerProcess<InternedTexts> all;
  InternedTexts& interned = all.get();
  const std::lock_guard lock(interned.mutex);
  return interned.texts.insert(text).first->c_str();
}

// body.operator()<Args>() of the operation with that number.
template <class Body>
void with_op(const Check& check, fl_op op, Body&& body) {
  bool found = false;
  for_each_operation([&]<class Args>() {
    if (std::size_t(op) != operation_index<Args>()) return;
    found = true;
    body.template operator()<Args>();
  });
  if (!found) check.refuse("op must be FL_SGEMM, FL_SGEMV or FL_TRANSPOSE, got " + std::to_string(int(op)));
}
static_assert(FL_SGEMM == operation_index<SgemmArgs>() && FL_SGEMV == operation_index<SgemvArgs>() &&
                  FL_TRANSPOSE == operation_index<TransposeArgs>(),
              "fl_op counts the operations in the order of operations.h");

template <class Args>
fl_kernel_info kernel_info(const Check& check, int index) {
  const auto all = kernels<Args>();
  if (index < 0 || index >= int(all.size()))
    check.refuse("index must be in [0, " + std::to_string(all.size()) + "), got " + std::to_string(index));
  const auto& kernel = all[size_t(index)];
  const KernelState state = state_of(kernel);
  const Traits& traits = kernel.traits;
  fl_kernel_info info = FL_KERNEL_INFO_INIT;
  info.name = kernel.name, info.blurb = kernel.blurb;
  info.device = side_of(kernel.needs), info.needs = needs_name(kernel.needs);
  info.available = state.reason.empty(), info.reason = intern(state.reason);
  info.passed_over = intern(state.passed_over), info.measured_on = intern(joined(state.measured_on, ","));
  info.strict = traits.strict, info.ladder = traits.ladder, info.reproducible = traits.reproducible;
  info.tile_rows = traits.tile_rows, info.tile_cols = traits.tile_cols, info.terms = terms_name(traits.terms);
  info.split_k = traits.split_k, info.cluster_k = traits.cluster_k, info.stream_k = traits.stream_k;
  info.tma = traits.tma, info.addend = traits.addend, info.triangle = traits.triangle;
  return info;
}

fl_info library_info() {
  const bool found = cuda::device_count() > 0;
  return {sizeof(fl_info),
          instruction_set(),
          cuda::runtime_version() != 0,
          cuda::built_architectures(),
          found ? 0 : cuda::unavailable().code,
          found ? "" : cuda::unavailable().message.c_str(),
          intern(missing_code()),
          cuda::driver_version(),
          cuda::runtime_version()};
}

fl_device_info device_info(int device) {
  cuda::require_device(device);
  const cuda::DeviceInfo& found = cuda::device_info(device);
  const DeviceSpec& spec = found.spec;
  return {sizeof(fl_device_info),
          spec.name,
          spec.compute_capability,
          found.compute_capability,
          (found.pretended.empty() ? found.ignored : found.pretended).c_str(),
          spec.multiprocessors,
          spec.clock_khz,
          int64_t(found.memory),
          int64_t(spec.l2_bytes),
          int64_t(spec.shared_per_block),
          spec.bytes_per_us,
          spec.peak_gflops(),
          chip_name(nearest_measured(spec).chip)};
}

}  // namespace
}  // namespace fl

using fl::Check;
using fl::guarded;

int fl_kernel_count(fl_op op) {
  int count = -1;
  static_cast<void>(guarded([&] {
    fl::with_op(Check("fl_kernel_count"), op, [&]<class Args>() { count = int(fl::kernels<Args>().size()); });
  }));
  return count;
}

fl_status fl_kernel_at(fl_op op, int index, fl_kernel_info* info) {
  return guarded([&] {
    const Check check("fl_kernel_at");
    fl_kernel_info found = FL_KERNEL_INFO_INIT;
    fl::with_op(check, op, [&]<class Args>() { found = fl::kernel_info<Args>(check, index); });
    fl::write_struct(check, "info", "FL_KERNEL_INFO_INIT", info, offsetof(fl_kernel_info, passed_over), found);
  });
}

fl_status fl_get_info(fl_info* info) {
  return guarded(
      [&] { fl::write_struct(Check("fl_get_info"), "info", "FL_INFO_INIT", info, sizeof *info, fl::library_info()); });
}

fl_status fl_get_device_info(int device, fl_device_info* info) {
  return guarded([&] {
    fl::write_struct(Check("fl_get_device_info"), "info", "FL_DEVICE_INFO_INIT", info, sizeof *info,
                     fl::device_info(device));
  });
}

fl_status fl_load_tuning(const char* path) {
  return guarded([&] {
    const std::string complaint =
        fl::load_tuning(path ? fl::TuningFile{path, fl::TuningFile::caller} : fl::tuning_file());
    if (!complaint.empty()) Check("fl_load_tuning").refuse(complaint);
  });
}

const char* fl_version(void) { return FASTLINALG_VERSION; }
int fl_cuda_device_count(void) {
  int count = 0;
  static_cast<void>(guarded([&] { count = fl::cuda::device_count(); }));
  return count;
}
int fl_get_num_threads(void) { return fl::num_threads(); }
int fl_max_threads(void) { return fl::max_threads(); }
fl_status fl_set_num_threads(int n) {
  return guarded([&] { fl::set_num_threads(n); });
}
