// Two lists of arrays that are multiplied pair by pair, and the results.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bindings/arrays/results.h"
#include "bindings/calls/call.h"
#include "bindings/calls/problems.h"

namespace fl::py {

// One product, by the rules of matmul.
struct GroupMember {
  std::string a_name, b_name, out_name;  // "a[3]", ...
  Array a, b;
  std::optional<std::variant<Problem<SgemmArgs>, Problem<SgemvArgs>>> problem;
  std::optional<Target> target;

  const Shape& shape() const {
    return std::visit([](const auto& p) -> const Shape& { return p.shape; }, *problem);
  }
};

class GroupMembers {
 public:
  // What one can iterate over; `out` may be None.
  GroupMembers(const char* function, nb::handle a, nb::handle b, nb::handle out);
  GroupMembers(const GroupMembers&) = delete;
  GroupMembers& operator=(const GroupMembers&) = delete;

  // Reads and checks all of them, and `out`. Nothing has been written when it returns. These live longer than the
  // location, which keeps their names, and waits for what a call that failed has queued.
  void read(Precision precision, CallLocation& location);
  // Of those from one place on in an order in which the longest come first. Makes the results that are not given.
  std::vector<Product> products(std::size_t first, std::size_t count, CallLocation& location);
  std::vector<Product> products(CallLocation& location) { return products(0, size(), location); }
  std::size_t size() const { return members_.size(); }
  nb::list finish(CallLocation& location);

  // For more calls on the same memory; InvalidValue names what cannot be bound.
  void hold();
  void join(CallLocation& location);

 private:
  void read(GroupMember& member, std::size_t i, CallLocation& location);
  void set_problem(GroupMember& member) const;
  void set_target(GroupMember& member, CallLocation& location);
  void keep_operands();
  void require_results_apart() const;
  void require_apart(const GroupMember& x, const GroupMember& y) const;

  std::string function_;
  Precision precision_ = Precision::accurate;
  nb::object a_, b_, out_;  // tuples; `out_` may be None
  std::vector<GroupMember> members_;
  std::vector<std::size_t> longest_first_;
  ListResults results_;
};

}  // namespace fl::py
