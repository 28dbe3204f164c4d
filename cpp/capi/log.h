// The log of the C interface: fl_set_log().
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "core/operations.h"
#include "run/run.h"
#include "runtime/per_thread.h"

namespace fl {

struct LogTarget;
const LogTarget* log_target() noexcept;  // null: nobody listens
void log_once(const LogTarget& target, const std::string& line);
void say_ignored_settings(const LogTarget& target, Device device);

// Lets a call report to the log.
class CallLog {
 public:
  // What is said of sizes that this thread has just used would not be new.
  template <class Args>
  CallLog(const Args& args, CallOptions& options) {
    const LogTarget* const target = log_target();
    if (!target || !is_new_to_thread<Args>(std::pair(target, sizes_of(args)))) return;
    begin(options, *target,
          [&args, target](const std::string& line) { log_once(*target, describe(args) + " -> " + line); });
  }
  // Of a list of products, whose lines begin with what each is.
  explicit CallLog(CallOptions& options) {
    const LogTarget* const target = log_target();
    if (target) begin(options, *target, [target](const std::string& line) { log_once(*target, line); });
  }
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

 private:
  void begin(CallOptions& options, const LogTarget& target, std::function<void(const std::string&)> function) {
    say_ignored_settings(target, options.device);
    function_ = std::move(function);
    options.log = &function_;
  }

  std::function<void(const std::string&)> function_;
};

}  // namespace fl
