// fastlinalg.grouped_matmul, and GroupedMatmul: the products of bound lists, planned once and executed many times.
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays/objects.h"
#include "bindings/calls/bind.h"
#include "bindings/calls/plan_lock.h"
#include "bindings/grouped/members.h"
#include "core/errors.h"

namespace fl::py {
namespace {

constexpr const char *function = "grouped_matmul", *plan_function = "GroupedMatmul";

// A device computes the longest products while the host makes the results of the others and launches them.
constexpr std::size_t first_part = 32;

nb::list multiply(GroupMembers& members, Options& options, CallLocation& location) {
  members.read(options.precision, location);
  set_location(options.call, location);
  std::size_t done = 0, part = location.on_device() ? first_part : members.size();
  for (; done < members.size(); done += part, part *= 2) {
    if (const std::size_t left = members.size() - done; left < 2 * part) part = left;
    call(*make_group(members.products(done, part, location), options, Group::once), options, location.stream());
  }
  return members.finish(location);
}

}  // namespace

nb::object grouped_matmul(nb::handle a, nb::handle b, nb::handle out, nb::handle precision, nb::handle device,
                          nb::handle stream, nb::handle dtype) {
  Options options = parse_options(function, nb::none(), precision, device, stream);
  GroupMembers members(function, a, b, out);
  CallLocation location(options.device, options.call.stream, parse_dtype(function, dtype));
  return multiply(members, options, location);
}

nb::list tensor_products(nb::handle a, nb::handle b, std::string_view precision) {
  Options options;
  options.precision = parse_precision(precision);
  GroupMembers members(function, a, b, nb::none());
  CallLocation location(CallLocation::Operator{});
  return multiply(members, options, location);
}

// ---------------------------------------------------------------- the plan
namespace {

class GroupedPlan {
 public:
  GroupedPlan(nb::handle a, nb::handle b, nb::handle out, nb::handle precision, nb::handle device, nb::handle stream)
      : options_(parse_options(plan_function, nb::none(), precision, device, stream)),
        stream_(nb::borrow(stream)),
        device_name_(options_.device),
        members_(std::make_unique<GroupMembers>(plan_function, a, b, out)) {
    CallLocation location(device_name_, options_.call.stream);
    members_->read(options_.precision, location);
    std::vector<Product> products = members_->products(location);
    members_->hold();
    void* const given = options_.call.stream;
    set_location(options_.call, location);
    options_.call.stream = given;
    group_ = make_group(std::move(products), options_, Group::again);
    finish_call(location);
  }

  nb::object execute(nb::handle stream) {
    const PlanLock lock(mutex_);
    if (lock.cut_off()) group_.reset();
    if (!members_) throw InvalidValue(std::string(plan_function) + ".execute() after free(): make a new plan");
    CallLocation location(device_name_, stream.is_none() ? options_.call.stream : parse_stream(stream));
    members_->join(location);
    if (!group_) group_ = make_group(members_->products(location), options_, Group::again);
    try {
      call(*group_, options_, location.stream());
    } catch (...) {
      group_.reset();
      throw;
    }
    return members_->finish(location);
  }

  void free() {
    const PlanLock lock(mutex_);
    group_.reset(), members_.reset(), stream_.reset();
  }

  std::string repr() {
    const PlanLock lock(mutex_);
    return "fastlinalg.GroupedMatmul(" + (members_ ? std::to_string(members_->size()) + " products)" : "freed)");
  }

 private:
  PlanMutex mutex_;
  Options options_;
  nb::object stream_;
  std::string device_name_;                // options_.device, kept
  std::unique_ptr<GroupMembers> members_;  // null after free()
  std::unique_ptr<Group> group_;           // null if it has to be made anew
};

}  // namespace

void bind_grouped_plan(nb::module_& m) {
  using nb::arg;
  if (take_registered<GroupedPlan>(m, "GroupedPlan")) return;
  nb::class_<GroupedPlan>(m, "GroupedPlan", "What fastlinalg.GroupedMatmul is built on.")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(), arg("a").none(),
           arg("b").none(), arg("out").none(), arg("precision").none(), arg("device").none(), arg("stream").none())
      .def("_execute", &GroupedPlan::execute, arg("stream").none())
      .def("free", &GroupedPlan::free)
      .def("__repr__", &GroupedPlan::repr);
}

}  // namespace fl::py
