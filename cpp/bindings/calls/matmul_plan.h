// fastlinalg.Matmul: a product of bound operands, planned once and executed many times.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bindings/calls/call.h"
#include "bindings/calls/plan_lock.h"

namespace fl::py {

class MatmulPlan {
 public:
  MatmulPlan(nb::handle a, nb::handle b, nb::handle c, nb::handle out, nb::handle alpha, nb::handle beta,
             nb::handle trans_a, nb::handle trans_b, nb::handle kernel, nb::handle precision, nb::handle device,
             nb::handle stream, nb::handle constant, nb::handle dtype);

  void plan();
  nb::object execute(nb::handle stream);
  void reset_operands(nb::handle a, nb::handle b, nb::handle c, nb::handle out);
  void free();

  nb::object kernel();
  nb::object device();
  size_t workspace_bytes();
  std::string repr();

 private:
  template <class Args>
  using Plans = std::vector<Plan<Args>>;  // one for each run of the batch
  using AnyPlans = std::variant<Plans<SgemmArgs>, Plans<SgemvArgs>>;
  // What fixes a result in memory but for its address.
  struct Layout {
    Shape shape, strides;
    bool operator==(const Layout&) const = default;
  };

  static Layout layout_of(const Array& x);
  static bool has_layout(const Array& x, const Layout& layout);
  static void require_same_layout(const char* method, const char* name, const Array& planned, const Array& given);
  void require_live(const char* method) const;
  void join(CallLocation& location);
  void read_again(const char* name, Array& x, CallLocation& location);
  Target& target_in(CallLocation& location);
  void require_constant(const char* method, const Target& target, const Array& a, const Array& b) const;
  template <class Visit>
  void with_problem(const Array& a, const Array& b, Visit&& visit) const;  // visit(Problem<...>)
  template <class Visit>
  void for_each_plan(Visit&& visit) {  // visit(plan)
    const auto each = [&](auto& plans) {
      for (auto& plan : plans) visit(plan);
    };
    std::visit(each, plans_);
  }
  template <class Visit>
  nb::object first_plan(Visit&& visit) {  // visit(plan) of the first that computes something, or None
    nb::object result = nb::none();
    for_each_plan([&](const auto& plan) {
      if (result.is_none() && *plan.kernel()) result = visit(plan);
    });
    return result;
  }
  // The life of a method of the plan.
  struct Method : PlanLock {
    explicit Method(MatmulPlan& plan) : PlanLock(plan.mutex_) {
      if (cut_off()) plan.forget_unfinished();
    }
  };
  nb::object kernel_of_first();
  nb::object device_of_first();
  void forget_unfinished();
  void bind(const Array& result, CallLocation& location);
  void move_result(const Array& result);
  void point_to(const Array& result, CallLocation& location);
  nb::object run_into(Target& target, CallLocation& location);

  enum { unplanned, planned, freed } state_ = unplanned;
  PlanMutex mutex_;
  Array a_, b_;
  std::vector<Array> converted_;  // both, if a call would convert one before its kernels run: so does each execution
  nb::object c_, out_, kernel_name_, stream_;
  float alpha_, beta_;
  bool trans_a_, trans_b_;
  Options options_;
  std::string device_name_;  // options_.device, kept
  OtherTypes other_types_;
  Shape shape_;                   // of the result
  std::optional<Target> target_;  // of the last execution, if the next can use it
  AnyPlans plans_;
  Layout result_layout_;  // that the plans are made for
  const float *a_data_ = nullptr, *b_data_ = nullptr;
  float* result_data_ = nullptr;  // that they point to
};

}  // namespace fl::py
