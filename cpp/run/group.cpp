#include "run/group.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "run/forecast.h"
#include "run/run.h"
#include "run/sgemm_extras.h"
#include "runtime/call_watch.h"
#include "runtime/host_memory.h"
#include "runtime/thread_pool.h"
#include "runtime/threading.h"

namespace fl {
namespace {

// ---------------------------------------------------------------- on the CPU
// A product is shared out among all threads if it takes one thread longer than that, or than an eighth of what each of
// them has to do; but not one that is over sooner than a few threads have come together.
constexpr double most_alone_us = 5000, least_shared_us = 100;

// What one thread computes.
struct Task {
  std::variant<const CpuRun<SgemmArgs>*, const CpuRun<SgemvArgs>*> run;
  double us;
  std::size_t workspace_bytes;
};

template <class Args>
Task task_of(const CpuRun<Args>& run) {
  return {&run, estimate_us(*run.kernel, run.args, run.device()), run.kernel->workspace(run.args)};
}

void run_tasks(std::span<const Task> tasks, int threads) {
  constexpr std::size_t page = 4096;
  std::size_t each = 0;
  for (const Task& task : tasks) each = std::max(each, (task.workspace_bytes + page - 1) / page * page);
  threads = int(std::min<std::size_t>(std::size_t(threads), tasks.size()));
  const HostWorkspace workspace(each * std::size_t(threads));
  auto one = [&](int64_t index, int slot) {
    void* const own = static_cast<char*>(workspace.data()) + each * std::size_t(slot);
    std::visit([&](const auto* run) { run->kernel->run(run->args, Context{.workspace = own, .threads = 1}); },
               tasks[std::size_t(index)].run);
  };
  parallel_for(int64_t(tasks.size()), threads, one);
}

// A call that is watched and made of parts: what one of them has done counts from where the call was.
class WatchedParts {
 public:
  explicit WatchedParts(double all_us) : whole_(CallWatch::current()), all_us_(all_us) {}

  // part(), unless the call is to end.
  template <class Part>
  void run(double us, double steps, Part&& part) {
    if (!whole_) return part();
    if (!whole_->goes_on(int64_t(done_us_), int64_t(all_us_))) return;
    const double from = done_us_ / all_us_, share = us / all_us_;
    const CallWatch watch(steps, [&](double done) { return whole_->look_at(from + share * done); });
    part();
    done_us_ += us;
  }

 private:
  CallWatch* const whole_;
  const double all_us_;
  double done_us_ = 0;
};

}  // namespace

Group::Group(std::vector<Product> products, const CallOptions& options, Use use)
    : products_(std::move(products)), options_(options), use_(use) {
  const ThreadCount threads;
  decide_all();
  if (use_ == again) options_.log = nullptr;
}
Group::~Group() = default;

void Group::decide_all() {
  captured_.reset();
  members_.clear(), places_.clear(), logs_.clear();
  members_.reserve(products_.size()), places_.reserve(products_.size());  // where members stay
  threads_ = num_threads();
  for (const Product& product : products_) std::visit([this](const auto& args) { add(args); }, product);
  std::ranges::sort(places_, {}, [](const Place& place) { return std::tuple(place.way, -place.us, place.member); });
}

double Group::all_steps() const {
  double steps = 0;
  for (const Product& product : products_)
    steps += std::visit([](const auto& args) { return step_count(args); }, product);
  return steps;
}

std::size_t Group::workspace_bytes() const { return captured_ ? captured_->workspace_bytes() : 0; }

template <class Args>
void Group::add(const Args& given) {
  const Log* log = nullptr;
  if (options_.log)
    log = &logs_.emplace_back([this, &given](const std::string& line) {
      if (options_.log) (*options_.log)(describe(given) + " -> " + line);
    });
  CallOptions options = options_;
  options.log = log;
  as_computed(given, options, [&]<class Computed>(const Computed& args, const CallOptions& computed) {
    std::optional<Decision<Computed>> decision = decide(args, computed);
    if (!decision) return;
    log_choice(*decision, computed);
    const Chosen<Computed>& now = chosen(*decision);
    const Way way = std::holds_alternative<CpuRun<Computed>>(*decision)   ? Way::cpu
                    : std::holds_alternative<Launch<Computed>>(*decision) ? Way::launch
                                                                          : Way::alone;
    const double us = estimate_us(*now.kernel, now.args, place_of(*decision));
    places_.push_back({way, us, &members_.emplace_back(Member<Computed>{std::move(*decision), log})});
  });
}

void Group::run(void* stream) {
  const ThreadCount threads;  // one figure for the rules and the kernels
  if (threads.count() != threads_) decide_all();
  options_.stream = stream;
  const auto of = [&](Way way) -> Places { return std::ranges::equal_range(places_, way, {}, &Place::way); };
  run_on_device(of(Way::launch));
  for (const Place& place : of(Way::alone)) run_alone(*place.member);
  run_on_cpu(of(Way::cpu));
}

void Group::run_alone(const AnyMember& any) {
  std::visit(
      [this](const auto& member) {
        CallOptions options = options_;
        options.log = options_.log ? member.log : nullptr;
        auto this_time = member.decision;  // another run may find memory
        with_concessions(this_time, options, [&] { execute(this_time, options); });
      },
      any);
}

void Group::run_on_cpu(Places places) {
  std::vector<Task> tasks;
  tasks.reserve(places.size());
  double all_us = 0;
  {
    const ThreadCount one(1);
    for (const Place& place : places)
      std::visit([&]<class Args>(
                     const Member<Args>& member) { tasks.push_back(task_of(std::get<CpuRun<Args>>(member.decision))); },
                 *place.member);
  }
  for (const Task& task : tasks) all_us += task.us;
  WatchedParts parts(all_us);
  std::size_t shared = 0;
  double left_us = all_us;
  const auto is_shared = [&](double us) {
    return us > most_alone_us || us > std::max(least_shared_us, left_us / (8.0 * threads_));
  };
  for (; shared < tasks.size() && is_shared(tasks[shared].us); left_us -= tasks[shared++].us) {
    const double steps = std::visit([](const auto* run) { return step_count(run->args); }, tasks[shared].run);
    parts.run(tasks[shared].us, steps, [&] { run_alone(*places[shared].member); });
  }
  if (shared < tasks.size()) parts.run(left_us, 1.0, [&] { run_tasks(std::span(tasks).subspan(shared), threads_); });
}

std::vector<cuda::AnyLaunch> Group::launches(Places places) {
  std::vector<cuda::AnyLaunch> all;
  all.reserve(places.size());
  const auto add_launch = [&]<class Args>(const Member<Args>& member) {
    const Launch<Args>& launch = std::get<Launch<Args>>(member.decision);
    all.push_back(cuda::OneLaunch<Args>{launch.kernel, launch.args});
  };
  for (const Place& place : places) std::visit(add_launch, *place.member);
  return all;
}

// Where the log asks which kernel has computed, each is waited for. All lie on the device of the call.
void Group::run_on_device(Places places) {
  const bool one_by_one = (use_ == once && places.size() < 2) || (options_.log && options_.log_choice);
  const int device = options_.device.ordinal;
  if (!one_by_one && !places.empty()) try {
      if (use_ == once) return cuda::run_on_device_operands(launches(places), device, options_.stream);
      if (!captured_) captured_ = std::make_unique<cuda::CapturedGroup>(launches(places), device);
      return captured_->run(options_.stream);
    } catch (const OutOfMemory&) {  // for the workspaces of all
    }
  for (const Place& place : places) run_alone(*place.member);
}

}  // namespace fl
