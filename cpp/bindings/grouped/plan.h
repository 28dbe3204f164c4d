// fastlinalg.GroupedMatmul: the products of bound lists, planned once and executed many times.
#pragma once

#include <memory>
#include <string>

#include "bindings/calls/plan_lock.h"
#include "bindings/grouped/members.h"

namespace fl::py {

class GroupedPlan {
 public:
  GroupedPlan(nb::handle a, nb::handle b, nb::handle out, nb::handle precision, nb::handle device, nb::handle stream);

  nb::object execute(nb::handle stream);
  void free();
  std::string repr();

 private:
  PlanMutex mutex_;
  Options options_;
  nb::object stream_;
  std::string device_name_;                // options_.device, kept
  std::unique_ptr<GroupMembers> members_;  // null after free()
  std::unique_ptr<Group> group_;           // null if it has to be made anew
};

void bind_grouped_plan(nb::module_& m);

}  // namespace fl::py
