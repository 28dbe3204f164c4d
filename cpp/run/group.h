// Products of a list, of equal or unequal shapes. Each has the kernel that it has alone, and so the same bits.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "device/launches.h"
#include "run/decision.h"
#include "runtime/threading.h"

namespace fl {

using Product = std::variant<SgemmArgs, SgemvArgs>;

// One call. No result shares memory with another one or with any operand. What `options.log` is told begins with what
// it is about. The products stay where they are meanwhile.
class FL_EXPORT Group {
 public:
  Group(std::span<const Product> products, const CallOptions& options);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  void run();

 private:
  using Log = std::function<void(const std::string&)>;
  template <class Args>
  struct Member {
    Decision<Args> decision;
    const Log* log;
  };
  using AnyMember = std::variant<Member<SgemmArgs>, Member<SgemvArgs>>;
  // On the CPU, by one launch on a device, and all others, one after the other.
  enum class Way { cpu, launch, alone };
  struct Place {
    Way way;
    double us;  // that it is expected to take, on all threads
    AnyMember* member;
  };
  using Places = std::span<const Place>;

  template <class Args>
  void add(const Args& args);
  void run_alone(AnyMember& member);
  void run_on_cpu(Places places);
  void run_on_device(Places places);

  const ThreadCount threads_;  // one figure for the rules and the kernels
  CallOptions options_;
  std::deque<Log> logs_;
  std::vector<AnyMember> members_;
  std::vector<Place> places_;  // the longest of each way first: what is short fills the ends of what is long
};

}  // namespace fl
