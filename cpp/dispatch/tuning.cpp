#include "dispatch/tuning.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "core/errors.h"
#include "core/operations.h"
#include "device/device_info.h"
#include "device/pretended.h"
#include "table/registry.h"

namespace fl {
namespace {

struct Corrections {
  Device::Kind kind;
  std::string name;
  std::array<Curves, operation_count> curves;  // of an operation, by its index; empty: none
};
struct Table {
  std::string source;
  std::vector<Corrections> entries;
};

// Never freed: a call may be reading it. Tables are set about once in a process.
std::atomic<const Table*> current{nullptr};
std::atomic<unsigned> generation{0};

void check(const TunedRow& row) {
  const bool ascending =
      std::is_sorted(row.knots.begin(), row.knots.end(), [](const Knot& a, const Knot& b) { return !(a.us > b.us); });
  const auto positive = [](double x) { return std::isfinite(x) && x > 0; };
  const bool good = std::all_of(row.knots.begin(), row.knots.end(),
                                [&](const Knot& knot) { return positive(knot.us) && positive(knot.factor); });
  if (row.knots.empty() || !good || !ascending)
    throw InvalidValue("the knots of " + row.op + " kernel '" + row.kernel +
                       "' must be pairs of positive numbers, the first ascending");
}

template <class Args>
void add(const TunedRow& row, Device::Kind kind, Curves& curves) {
  const auto rows = kernels<Args>();
  const auto& kernel = find<Args>(row.kernel);
  if (on_cuda(kernel.needs) != (kind == Device::cuda))
    throw InvalidValue(row.op + " kernel '" + row.kernel + "' does not run on the device it was tuned for");
  curves.resize(rows.size());
  curves[std::size_t(&kernel - rows.data())] = Curve(row.knots);
}

Corrections corrections(const TunedDevice& device) {
  Corrections result{.kind = device.kind, .name = device.name, .curves = {}};
  for (const TunedRow& row : device.rows) {
    check(row);
    if (!is_operation(row.op)) throw InvalidValue("there is no operation '" + row.op + "'");
    with_operation(row.op, [&]<class Args>() { add<Args>(row, device.kind, result.curves[operation_index<Args>()]); });
  }
  return result;
}

const Corrections* of_device(const Table* table, Device device) {
  if (!table) return nullptr;
  for (const Corrections& entry : table->entries) {
    if (entry.kind != device.kind) continue;
    if (device.kind == Device::cpu || entry.name == tuned_name(device.ordinal)) return &entry;
  }
  return nullptr;
}

}  // namespace

Curve::Curve(const std::vector<Knot>& knots) {
  for (const Knot& knot : knots) {
    log_us_.push_back(std::log(knot.us));
    log_factor_.push_back(std::log(knot.factor));
  }
}

double Curve::corrected(double us) const {
  const double x = std::log(std::max(us, 1e-3));
  const auto right = std::size_t(std::upper_bound(log_us_.begin(), log_us_.end(), x) - log_us_.begin());
  if (right == 0) return us * std::exp(log_factor_.front());
  if (right == log_us_.size()) return us * std::exp(log_factor_.back());
  const double part = (x - log_us_[right - 1]) / (log_us_[right] - log_us_[right - 1]);
  return us * std::exp(log_factor_[right - 1] + part * (log_factor_[right] - log_factor_[right - 1]));
}

void set_tuning(const std::vector<TunedDevice>& devices, const std::string& source) {
  Table table{.source = source, .entries = {}};
  for (const TunedDevice& device : devices) table.entries.push_back(corrections(device));
  current.store(table.entries.empty() ? nullptr : new const Table(std::move(table)), std::memory_order_release);
  generation.fetch_add(1, std::memory_order_release);
}

std::string tuning_source(Device device) {
  const Table* const table = current.load(std::memory_order_acquire);
  const Corrections* const found = of_device(table, device);
  const auto corrects = [](const Curves& curves) { return !curves.empty(); };
  return found && std::ranges::any_of(found->curves, corrects) ? table->source : "";
}

std::string tuned_name(int device) {
  const cuda::DeviceInfo& info = cuda::device_info(device);
  const std::string name = info.spec.name;
  return info.pretended.empty() ? name : name + " as " + capability_text(info.spec.compute_capability);
}

unsigned tuning_generation() { return generation.load(std::memory_order_acquire); }

template <class Args>
const Curves* tuned_rows(Device device) {
  const Corrections* found = of_device(current.load(std::memory_order_acquire), device);
  if (!found) return nullptr;
  const Curves& curves = found->curves[operation_index<Args>()];
  return curves.empty() ? nullptr : &curves;
}

#define FL_INSTANTIATE(Args) template const Curves* tuned_rows<Args>(Device);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
