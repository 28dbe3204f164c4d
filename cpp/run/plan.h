// A call that is decided once and run many times.
#pragma once

#include <memory>

#include "device/launches.h"
#include "run/run.h"
#include "runtime/host_memory.h"

namespace fl {

// Keeps the chosen kernel, the arguments in their one form, the kernel's workspace and what it can of a constant
// operand. One thread at a time may use a plan, and none after one of its functions has thrown OutOfMemory.
template <class Args>
class FL_EXPORT Plan {
 public:
  Plan(const Args& args, const CallOptions& options);  // the name in options.kernel has to outlive the plan
  ~Plan();
  Plan(Plan&&) noexcept;

  // Other addresses for the operands; everything else is as it was. The kernel stays unless they rule it out.
  void rebind(const Args& args);
  // The values of the constant operand have changed, or its address.
  void renew_constant();
  // What run() does, on `stream`. Executions on several streams wait for each other if they share a workspace.
  void execute(void* stream);

  const Args& args() const { return given_; }
  const char* kernel() const;  // "" where nothing is computed
  Device device() const;
  bool in_device_memory() const { return options_.device_memory; }
  std::size_t workspace_bytes() const;

 private:
  void prepare();
  void get_workspace();
  void get_host_workspace();
  void get_captured_run(const Launch<Args>& launch);
  void run_on_cpu();
  void run_on_device(void* stream);

  Args given_;
  CallOptions options_;
  std::optional<Decision<Args>> decision_;            // nothing if nothing is left to compute
  std::unique_ptr<Plan<SgemvArgs>> vector_product_;   // of one row or one column: all that is done
  std::size_t workspace_bytes_ = 0, kept_bytes_ = 0;  // of the kernel, and of what is kept of the constant operand
  int threads_ = 0;                                   // that the kernel was chosen for and its workspace is made for
  std::unique_ptr<HostWorkspace> host_workspace_, host_kept_;
  PrepackedOperands prepacked_;  // in host_kept_
  std::unique_ptr<cuda::CapturedRun> captured_run_;
};

}  // namespace fl
