// Products of a list, of equal or unequal shapes. Each has the kernel that it has alone, and so the same bits.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "device/launches.h"
#include "run/decision.h"

namespace fl {

using Product = std::variant<SgemmArgs, SgemvArgs>;

// No result shares memory with another one or with any operand. What `options.log` is told begins with what it is
// about. One thread at a time.
class FL_EXPORT Group {
 public:
  // One call, or a plan, which keeps what the device needs and has no log after it is made.
  enum Use { once, again };
  Group(std::vector<Product> products, const CallOptions& options, Use use);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  void run(void* stream);
  double all_steps() const;
  std::size_t workspace_bytes() const;  // that a plan keeps on a device, from its first run on

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

  void decide_all();
  template <class Args>
  void add(const Args& args);
  void run_alone(const AnyMember& member);
  void run_on_cpu(Places places);
  static std::vector<cuda::AnyLaunch> launches(Places places);
  void run_on_device(Places places);

  const std::vector<Product> products_;
  CallOptions options_;
  const Use use_;
  int threads_ = 0;  // that the kernels were chosen for
  std::deque<Log> logs_;
  std::vector<AnyMember> members_;
  std::vector<Place> places_;  // the longest of each way first: what is short fills the ends of what is long
  std::unique_ptr<cuda::CapturedGroup> captured_;
};

}  // namespace fl
