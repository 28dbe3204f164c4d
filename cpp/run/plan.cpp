#include "run/plan.h"

#include <string>
#include <type_traits>
#include <utility>

#include "core/errors.h"
#include "core/normalise.h"
#include "core/operations.h"
#include "runtime/threading.h"
#include "table/prepacked.h"

namespace fl {
namespace {

bool constant_moves(const SgemmArgs& before, const SgemmArgs& now, Side side) {
  return side == Side::a ? before.a != now.a : before.b != now.b;
}
template <class Args>
bool constant_moves(const Args&, const Args&, Side) {
  return false;
}

// A plan for operands in host memory loads both, or the one that both are.
bool same_symmetry(const SgemmArgs& before, const SgemmArgs& now) { return before.symmetric == now.symmetric; }
template <class Args>
bool same_symmetry(const Args&, const Args&) {
  return true;
}

}  // namespace

template <class Args>
Plan<Args>::Plan(const Args& args, const CallOptions& options) : given_(args), options_(options) {
  const ThreadCount threads;
  prepare();
  options_.device = decision_.kernel ? decision_.device : options.device;  // "auto" is answered once
  options_.log = nullptr;
}
template <class Args>
Plan<Args>::~Plan() = default;
template <class Args>
Plan<Args>::Plan(Plan&&) noexcept = default;

template <class Args>
const char* Plan<Args>::kernel() const {
  return decision_.kernel ? decision_.kernel->name : "";
}

// On the calling thread's ThreadCount.
template <class Args>
void Plan<Args>::prepare() {
  decision_ = decide(given_, options_);
  threads_ = num_threads();
  workspace_bytes_ = kept_bytes_ = 0;
  if (!decision_.kernel) return;
  try {
    get_workspace();
  } catch (const OutOfMemory&) {
    if (!do_without_workspace(decision_, options_)) throw;
    get_workspace();
  }
}

// Operands that move, from host memory or into packed copies, find their workspace beside them in each call's memory.
template <class Args>
void Plan<Args>::get_workspace() {
  host_workspace_.reset();
  captured_run_.reset();
  workspace_bytes_ = decision_.kernel->workspace(seen_by_kernel(decision_, options_));
  if (decision_.device.kind == Device::cpu) host_workspace_ = std::make_unique<HostWorkspace>(workspace_bytes_);
  else if (options_.device_memory && !decision_.packed) get_captured_run();
}

template <class Args>
PrepackedOperands Plan<Args>::operands_to_prepack() const {
  PrepackedOperands prepacked;
  if constexpr (std::is_same_v<Args, SgemmArgs>) {
    if (!options_.constant) return prepacked;
    const bool is_a = (*options_.constant == Side::a) != swaps_operands(given_);
    (is_a ? prepacked.a : prepacked.b) = prepacked_to_keep(*decision_.kernel, decision_.args, is_a ? Side::a : Side::b);
  }
  return prepacked;
}

// What is kept only saves time: where there is no room for it, each execution prepacks both operands.
template <class Args>
void Plan<Args>::get_captured_run() {
  const int device = decision_.device.ordinal;
  const PrepackedOperands prepacked = operands_to_prepack();
  kept_bytes_ = prepacked.a.bytes + prepacked.b.bytes;
  if (kept_bytes_ > 0) try {
      captured_run_ = std::make_unique<cuda::CapturedRun>(workspace_bytes_, prepacked, device);
      return;
    } catch (const OutOfMemory&) {
      if (options_.log)
        (*options_.log)("cuda:" + std::to_string(device) + " has no " + std::to_string(kept_bytes_) +
                        " bytes to prepack the constant operand");
      kept_bytes_ = 0;
    }
  captured_run_ = std::make_unique<cuda::CapturedRun>(workspace_bytes_, PrepackedOperands{}, device);
}

template <class Args>
void Plan<Args>::renew_constant() {
  if (captured_run_) captured_run_->forget_prepacked();
}

template <class Args>
void Plan<Args>::rebind(const Args& args) {
  if (args == given_) return;
  if (options_.constant && constant_moves(given_, args, *options_.constant)) renew_constant();
  given_ = args;
  if (!decision_.kernel) return;
  if (captured_run_) captured_run_->forget();
  const Args before = std::exchange(decision_.args, args);
  normalise(decision_.args);
  if (decision_.packed) decision_.layout = *cuda::packed_layout(decision_.args);  // the addresses of what is not copied
  // A kernel may cut its work by the alignment of its operands, and then need more room than before.
  const Args& seen = seen_by_kernel(decision_, options_);
  if (same_symmetry(before, decision_.args) && decision_.kernel->legal(seen) == nullptr &&
      decision_.kernel->workspace(seen) <= workspace_bytes_)
    return;
  const ThreadCount threads;
  prepare();
}

template <class Args>
void Plan<Args>::run_on_cpu() {
  const ThreadCount threads;
  if (threads.count() != threads_) prepare();
  decision_.kernel->run(decision_.args, Context{.workspace = host_workspace_->data(), .threads = threads_});
}

template <class Args>
void Plan<Args>::run_on_device(void* stream) {
  if (captured_run_) return captured_run_->run(*decision_.kernel, decision_.args, stream);
  options_.stream = stream;
  try {
    fl::execute(decision_, options_);
  } catch (const OutOfMemory&) {
    Decision<Args> this_time = decision_;  // the next execution may find memory
    if (!do_without_workspace(this_time, options_)) throw;
    fl::execute(this_time, options_);
  }
}

template <class Args>
void Plan<Args>::execute(void* stream) {
  if (!decision_.kernel) return;
  if (decision_.device.kind == Device::cpu) run_on_cpu();
  else run_on_device(stream);
}

#define FL_INSTANTIATE(Args) template class Plan<Args>;
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
