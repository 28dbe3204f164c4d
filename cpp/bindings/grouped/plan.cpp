#include "bindings/grouped/plan.h"

#include <nanobind/stl/string.h>

#include <utility>
#include <vector>

#include "bindings/arrays/names.h"
#include "core/errors.h"

namespace fl::py {
namespace {

constexpr const char* plan_function = "GroupedMatmul";

}  // namespace

GroupedPlan::GroupedPlan(nb::handle a, nb::handle b, nb::handle out, nb::handle precision, nb::handle device,
                         nb::handle stream)
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

nb::object GroupedPlan::execute(nb::handle stream) {
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

void GroupedPlan::free() {
  const PlanLock lock(mutex_);
  group_.reset(), members_.reset(), stream_.reset();
}

std::string GroupedPlan::repr() {
  const PlanLock lock(mutex_);
  return "fastlinalg.GroupedMatmul(" + (members_ ? std::to_string(members_->size()) + " products)" : "freed)");
}

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
