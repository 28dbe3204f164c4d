#include "transfer/device_shares.h"

#include <algorithm>

#include "core/layout.h"
#include "core/operations.h"

namespace fl {
namespace {

// ---------------------------------------------------------------- who computes
// Each step goes to the device that has the least to do so far, its results' way out included.
template <class Args>
std::vector<int> share_steps(const PanelPlan<Args>& plan, int devices) {
  std::vector<double> busy_us(std::size_t(devices), 0.0);
  std::vector<int> device_of;
  for (const PanelStep<Args>& step : plan.steps) {
    const auto least = std::min_element(busy_us.begin(), busy_us.end());
    *least += step.us + 4.0 * double(step.block.elements()) / busy_link_bytes_per_us;
    device_of.push_back(int(least - busy_us.begin()));
  }
  return device_of;
}

// ---------------------------------------------------------------- who needs what
bool overlap(int64_t a, int64_t a_size, int64_t b, int64_t b_size) { return a < b + b_size && b < a + a_size; }
bool same_rows(const Block& x, const Block& y) { return overlap(x.row, x.rows, y.row, y.rows); }
bool same_cols(const Block& x, const Block& y) { return overlap(x.col, x.cols, y.col, y.cols); }

// Of one problem: whether the load has rows, columns or elements that this block of the result is made of.
bool meets(const SgemmArgs&, const PanelLoad& load, const Block& result) {
  if (load.operand == OperandRole::a) return same_rows(load.block, result);
  if (load.operand == OperandRole::b) return same_cols(load.block, result);
  return same_rows(load.block, result) && same_cols(load.block, result);
}
template <class Args>
bool meets(const Args&, const PanelLoad&, const Block&) {
  return true;  // their problems are not cut up
}

template <class Args>
bool needs(const Args& layout, const PanelLoad& load, const Block& result) {
  const bool same_problem = is_shared(layout, load.operand) ||
                            overlap(load.block.problem, load.block.problems, result.problem, result.problems);
  return same_problem && meets(layout, load, result);
}

// ---------------------------------------------------------------- who fetches
bool by_columns(const SgemmArgs& p, OperandRole role) {
  return role == OperandRole::a ? !row_major(p.a) : role == OperandRole::b && !row_major(p.b);
}
template <class Args>
bool by_columns(const Args& p, OperandRole role) {
  return role == OperandRole::a && !row_major(p.a);
}

// A part is worth its copies and events. Matrices of several problems stay whole: each step has its own.
constexpr int64_t least_part = (256 << 10) / sizeof(float);
std::size_t part_count(const Block& block, std::size_t devices) {
  if (block.problems > 1) return 1;
  return std::size_t(std::clamp<int64_t>(block.elements() / least_part, 1, int64_t(devices)));
}

// Of so many parts of about the same number of lines of one matrix.
PanelLoad part_of(const PanelLoad& load, bool columns, std::size_t part, std::size_t parts) {
  PanelLoad result = load;
  int64_t& first = columns ? result.block.col : result.block.row;
  int64_t& count = columns ? result.block.cols : result.block.rows;
  const int64_t lines = count, begin = lines * int64_t(part) / int64_t(parts);
  count = lines * int64_t(part + 1) / int64_t(parts) - begin;
  first += begin;
  return result;
}

template <class Args>
class Shares {
 public:
  Shares(const PanelPlan<Args>& plan, const Args& layout, int devices, bool passes_on)
      : plan_(plan),
        layout_(layout),
        passes_on_(passes_on),
        device_of_(share_steps(plan, devices)),
        shares_(std::size_t(devices)),
        fetched_(std::size_t(devices), 0),
        before_(std::size_t(devices), std::vector<std::size_t>(std::size_t(devices), 0)) {}

  std::vector<DeviceShare<Args>> all() {
    for (DeviceShare<Args>& share : shares_) share.plan.kernel_for = plan_.kernel_for;
    std::size_t load = 0;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      for (; load < plan_.steps[i].loads; ++load) add_load(plan_.loads[load]);
      const auto device = std::size_t(device_of_[i]);
      DeviceShare<Args>& share = shares_[device];
      share.plan.steps.push_back(plan_.steps[i]);
      share.plan.steps.back().loads = share.plan.loads.size();
      share.received.push_back(before_[device]);
    }
    return std::move(shares_);
  }

 private:
  std::vector<int> needed_by(const PanelLoad& load) const {
    std::vector<bool> needed(shares_.size(), false);
    for (std::size_t i = 0; i < plan_.steps.size(); ++i)
      if (needs(layout_, load, plan_.steps[i].block)) needed[std::size_t(device_of_[i])] = true;
    std::vector<int> devices;
    for (std::size_t device = 0; device < needed.size(); ++device)
      if (needed[device]) devices.push_back(int(device));
    return devices;
  }
  // All devices fetch a part, whoever needs it: a load is there as soon as the links of all can bring it.
  void add_load(const PanelLoad& load) {
    const std::vector<int> devices = needed_by(load);
    if (!passes_on_) {
      for (const int device : devices) fetch(load, device, {});
      return;
    }
    const std::size_t parts = part_count(load.block, shares_.size());
    if (parts == 1 && devices.size() == 1) return fetch(load, devices.front(), devices);
    const bool columns = by_columns(layout_, load.operand);
    for (std::size_t part = 0; part < parts; ++part) {
      const auto least = std::min_element(fetched_.begin(), fetched_.end());
      fetch(part_of(load, columns, part, parts), int(least - fetched_.begin()), devices);
    }
  }
  void fetch(const PanelLoad& load, int device, const std::vector<int>& needed_by) {
    if (load.block.elements() == 0) return;
    DeviceShare<Args>& share = shares_[std::size_t(device)];
    share.plan.loads.push_back(load);
    share.passed_on.emplace_back();
    fetched_[std::size_t(device)] += load.block.elements();
    for (const int other : needed_by) {
      if (other == device) continue;
      share.passed_on.back().push_back(other);
      before_[std::size_t(other)][std::size_t(device)] = share.plan.loads.size();
    }
  }

  const PanelPlan<Args>& plan_;
  const Args& layout_;
  bool passes_on_;
  std::vector<int> device_of_;
  std::vector<DeviceShare<Args>> shares_;
  std::vector<int64_t> fetched_;                  // floats that each device fetches
  std::vector<std::vector<std::size_t>> before_;  // what the next step of each device has to have received
};

}  // namespace

template <class Args>
std::vector<DeviceShare<Args>> share_out(const PanelPlan<Args>& plan, const Args& layout, int devices, bool passes_on) {
  return Shares<Args>(plan, layout, std::min(devices, int(plan.steps.size())), passes_on).all();
}

// What each device costs a call on several: on two H100s 1024 rows took 1.07 to 1.18 times what they did on one, on two
// H200s 1536 took 1.16 to 1.29 times that, 2048 as long, 4096 three quarters.
constexpr double each_device_us = 200;

template <class Args>
double estimate_us(const PanelPlan<Args>& plan, const Args& layout, int devices, const HostLink& link) {
  const std::vector<DeviceShare<Args>> shares = share_out(plan, layout, devices, true);
  double us = 0;
  for (const DeviceShare<Args>& share : shares) us = std::max(us, estimate_us(share.plan, link));
  return us + (shares.size() > 1 ? each_device_us * double(shares.size()) : 0);
}

#define FL_INSTANTIATE(Args)                                                                         \
  template std::vector<DeviceShare<Args>> share_out(const PanelPlan<Args>&, const Args&, int, bool); \
  template double estimate_us(const PanelPlan<Args>&, const Args&, int, const HostLink&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
