// The log of the C interface: fl_set_log().
#pragma once

#include <array>
#include <functional>
#include <optional>
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

// Lets one call report to the log. What is said of sizes that this thread has just used would not be new.
template <class Args>
class CallLog {
 public:
  CallLog(const Args& args, CallOptions& options) {
    const LogTarget* const target = log_target();
    if (!target || !are_new(target, args)) return;
    say_ignored_settings(*target, options.device);
    function_ = [&args, target](const std::string& line) { log_once(*target, describe(args) + " -> " + line); };
    options.log = &function_;
  }
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

 private:
  static bool are_new(const LogTarget* target, const Args& args) {
    struct Last {
      std::optional<std::pair<const LogTarget*, decltype(sizes_of(args))>> call;
    };
    Last* const last = per_thread<Last>();
    const std::pair now(target, sizes_of(args));
    return !last || std::exchange(last->call, now) != now;
  }

  std::function<void(const std::string&)> function_;
};

// Lets a list of products report to it.
class GroupLog {
 public:
  explicit GroupLog(CallOptions& options) {
    const LogTarget* const target = log_target();
    if (!target) return;
    say_ignored_settings(*target, options.device);
    function_ = [target](const std::string& line) { log_once(*target, line); };
    options.log = &function_;
  }
  GroupLog(const GroupLog&) = delete;
  GroupLog& operator=(const GroupLog&) = delete;

 private:
  std::function<void(const std::string&)> function_;
};

}  // namespace fl
