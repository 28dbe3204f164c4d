#include "plan.h"

#include <utility>

#include "errors.h"
#include "normalise.h"
#include "threading.h"

namespace fl {

template <class Args>
Plan<Args>::Plan(const Args& args, const CallOptions& options) : given_(args), options_(options) {
  const ThreadCount threads;
  prepare();
  options_.device = decision_.row ? decision_.device : options.device;  // "auto" is answered once
  options_.log = nullptr;
}
template <class Args>
Plan<Args>::~Plan() = default;
template <class Args>
Plan<Args>::Plan(Plan&&) noexcept = default;

template <class Args>
const char* Plan<Args>::kernel() const {
  return decision_.row ? decision_.row->name : "";
}

// On the calling thread's ThreadCount.
template <class Args>
void Plan<Args>::prepare() {
  decision_ = decide(given_, options_);
  threads_ = num_threads();
  workspace_bytes_ = 0;
  if (!decision_.row) return;
  try {
    get_workspace();
  } catch (const OutOfMemory&) {
    if (!do_without_workspace(decision_, options_)) throw;
    get_workspace();
  }
}

// Operands that move, from host memory or into packed copies, find their workspace beside them in each call's own memory.
template <class Args>
void Plan<Args>::get_workspace() {
  host_workspace_.reset();
  device_run_.reset();
  workspace_bytes_ = decision_.row->workspace(seen_by_row(decision_, options_));
  if (decision_.device.kind == Device::cpu) host_workspace_ = std::make_unique<HostWorkspace>(workspace_bytes_);
  else if (options_.device_memory && !decision_.packed)
    device_run_ = std::make_unique<cuda::KeptRun>(workspace_bytes_, decision_.device.ordinal);
}

template <class Args>
void Plan<Args>::rebind(const Args& args) {
  if (args == given_) return;
  given_ = args;
  if (!decision_.row) return;
  if (device_run_) device_run_->forget();
  decision_.args = args;
  normalise(decision_.args);
  if (decision_.packed) decision_.layout = *cuda::packed_layout(decision_.args);  // the addresses of what is not copied
  // A row may cut its work by the alignment of its operands, and then need more room than before.
  const Args& seen = seen_by_row(decision_, options_);
  if (decision_.row->legal(seen) == nullptr && decision_.row->workspace(seen) <= workspace_bytes_) return;
  const ThreadCount threads;
  prepare();
}

template <class Args>
void Plan<Args>::run_on_cpu() {
  const ThreadCount threads;
  if (threads.count() != threads_) prepare();
  decision_.row->run(decision_.args, Context{.workspace = host_workspace_->data(), .threads = threads_});
}

template <class Args>
void Plan<Args>::run_on_device(void* stream) {
  if (device_run_)
    return cuda::run_on_device_operands(*decision_.row, decision_.args, decision_.device.ordinal, stream,
                                        device_run_.get());
  options_.stream = stream;
  try {
    fl::execute(decision_, options_);
  } catch (const OutOfMemory&) {
    if (!do_without_workspace(decision_, options_)) throw;
    fl::execute(decision_, options_);
  }
}

template <class Args>
void Plan<Args>::execute(void* stream) {
  if (!decision_.row) return;
  if (decision_.device.kind == Device::cpu) run_on_cpu();
  else run_on_device(stream);
}

template class Plan<SgemmArgs>;
template class Plan<SgemvArgs>;
template class Plan<TransposeArgs>;

}  // namespace fl
