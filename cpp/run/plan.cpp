#include "run/plan.h"

#include <string>
#include <type_traits>

#include "core/errors.h"
#include "core/normalise.h"
#include "run/forecast.h"
#include "run/sgemm_extras.h"
#include "runtime/call_watch.h"
#include "runtime/threading.h"

namespace fl {
namespace {

// Other addresses in a decision. The strides on a device are as they were.
template <class Kind, class Args>
void set_operands(Kind& kind, const Args& args) {
  kind.given() = args;
}
template <class Args>
void set_operands(PackedLaunch<Args>& launch, const Args& args) {
  launch.caller = args;
  launch.args = packed_for(*launch.kernel, args, *cuda::packed_layout(args));  // the addresses of what is not copied
}

}  // namespace

template <class Args>
Plan<Args>::Plan(const Args& args, const CallOptions& options) : given_(args), options_(options) {
  const ThreadCount threads;
  as_computed(given_, options_, [this]<class Problem>(const Problem& problem, const CallOptions& computed) {
    if constexpr (std::is_same_v<Problem, Args>) prepare();
    else vector_product_ = std::make_unique<Plan<SgemvArgs>>(problem, computed);
  });
  options_.device = *kernel() ? device() : options.device;  // "auto" is answered once
  options_.log = nullptr;
}
template <class Args>
Plan<Args>::~Plan() = default;
template <class Args>
Plan<Args>::Plan(Plan&&) noexcept = default;

template <class Args>
const char* Plan<Args>::kernel() const {
  if (vector_product_) return vector_product_->kernel();
  return decision_ ? chosen(*decision_).kernel->name : "";
}
template <class Args>
Device Plan<Args>::device() const {
  if (vector_product_) return vector_product_->device();
  return decision_ ? place_of(*decision_) : Device{};
}
template <class Args>
std::size_t Plan<Args>::workspace_bytes() const {
  return vector_product_ ? vector_product_->workspace_bytes() : workspace_bytes_ + kept_bytes_;
}

// On the calling thread's ThreadCount.
template <class Args>
void Plan<Args>::prepare() {
  decision_ = decide(given_, options_);
  threads_ = num_threads();
  workspace_bytes_ = kept_bytes_ = 0;
  if (!decision_) return;
  log_choice(*decision_, options_);
  with_concessions(*decision_, options_, [&] { get_workspace(); });
}

// Operands that move, from host memory or into packed copies, find their workspace beside them in each call's memory.
template <class Args>
void Plan<Args>::get_workspace() {
  host_workspace_.reset();
  captured_run_.reset();
  workspace_bytes_ = chosen(*decision_).kernel->workspace(chosen(*decision_).args);
  if (std::holds_alternative<CpuRun<Args>>(*decision_)) get_host_workspace();
  else if (const auto* const launch = std::get_if<Launch<Args>>(&*decision_)) get_captured_run(*launch);
}

template <class Args>
void Plan<Args>::get_host_workspace() {
  host_kept_.reset();
  host_workspace_ = std::make_unique<HostWorkspace>(workspace_bytes_);
  prepacked_ = operands_to_prepack(chosen(*decision_), given_, options_);
  PrepackedOperand& kept = prepacked_.a.bytes ? prepacked_.a : prepacked_.b;
  if (kept.bytes == 0) return;
  try {
    host_kept_ = std::make_unique<HostWorkspace>(kept.bytes);
    kept.memory = static_cast<char*>(host_kept_->data());
    kept_bytes_ = kept.bytes;
  } catch (const OutOfMemory&) {
    prepacked_ = {};
  }
}

// What is kept only saves time: where there is no room for it, each execution prepacks both operands.
template <class Args>
void Plan<Args>::get_captured_run(const Launch<Args>& launch) {
  const PrepackedOperands prepacked = operands_to_prepack(chosen(*decision_), given_, options_);
  kept_bytes_ = prepacked.a.bytes + prepacked.b.bytes;
  if (kept_bytes_ > 0) try {
      captured_run_ = std::make_unique<cuda::CapturedRun>(workspace_bytes_, prepacked, launch.ordinal);
      return;
    } catch (const OutOfMemory&) {
      if (options_.log)
        (*options_.log)("cuda:" + std::to_string(launch.ordinal) + " has no " + std::to_string(kept_bytes_) +
                        " bytes to prepack the constant operand");
      kept_bytes_ = 0;
    }
  captured_run_ = std::make_unique<cuda::CapturedRun>(workspace_bytes_, PrepackedOperands{}, launch.ordinal);
}

template <class Args>
void Plan<Args>::renew_constant() {
  if (captured_run_) captured_run_->forget_prepacked();
  prepacked_.a.set_ready(false), prepacked_.b.set_ready(false);
}

template <class Args>
void Plan<Args>::rebind(const Args& args) {
  if (args == given_) return;
  if (constant_moves(given_, args, options_)) renew_constant();
  given_ = args;
  if constexpr (std::is_same_v<Args, SgemmArgs>)
    if (vector_product_) return vector_product_->rebind(as_gemv(args));
  if (!decision_) return;
  if (captured_run_) captured_run_->forget();
  Args plain = args;
  normalise(plain);
  const bool as_before = std::visit([&](auto& kind) { return same_symmetry(kind.given(), plain); }, *decision_);
  std::visit([&](auto& kind) { set_operands(kind, plain); }, *decision_);
  // A kernel may cut its work by the alignment of its operands, and then need more room than before.
  const Chosen<Args>& now = chosen(*decision_);
  if (as_before && now.kernel->legal(now.args) == nullptr && now.kernel->workspace(now.args) <= workspace_bytes_)
    return;
  const ThreadCount threads;
  prepare();
}

template <class Args>
void Plan<Args>::run_on_cpu() {
  const ThreadCount threads;
  if (threads.count() != threads_) prepare();
  const Chosen<Args>& now = chosen(*decision_);
  const Context context{.workspace = host_workspace_->data(),
                        .threads = threads_,
                        .prepacked = host_kept_ ? &prepacked_ : nullptr,
                        .watch = CallWatch::current()};
  now.kernel->run(now.args, context);
  prepacked_.a.set_ready(true), prepacked_.b.set_ready(true);
}

template <class Args>
void Plan<Args>::run_on_device(void* stream) {
  if (captured_run_) return captured_run_->run(*chosen(*decision_).kernel, chosen(*decision_).args, stream);
  CallOptions options = options_;
  options.stream = stream;
  Decision<Args> this_time = *decision_;  // the next execution may find memory
  with_concessions(this_time, options, [&] { fl::execute(this_time, options); });
}

template <class Args>
void Plan<Args>::execute(void* stream) {
  if (vector_product_) return vector_product_->execute(stream);
  if (!decision_) return;
  if (host_workspace_) run_on_cpu();
  else run_on_device(stream);
}

#define FL_INSTANTIATE(Args) template class Plan<Args>;
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
