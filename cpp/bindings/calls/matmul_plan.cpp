#include "bindings/calls/matmul_plan.h"

#include <utility>

#include "bindings/arrays/gil.h"
#include "bindings/calls/compute.h"
#include "core/errors.h"

namespace fl::py {
namespace {

constexpr const char* function = "Matmul";

// A copy of misaligned elements, or of those of another type, would not follow the changes of the original.
Array operand(nb::handle object, const char* name, CallLocation& location) {
  Array x(object, name, Array::read, location);
  const bool copied = !x.object().is(object) || (x.stored().converted() && !x.stored().in_16_bits());
  if (copied && location.other_types() == OtherTypes::convert)
    throw InvalidType(std::string(function) + ": " + name +
                      " must be an aligned array of float32, float16 or bfloat16, " +
                      "which a plan reads at each execution; pass a float32 copy");
  if (copied)
    throw InvalidValue(std::string(function) + ": the elements of " + name +
                       " are not aligned to 4 bytes, which a plan cannot use; pass a copy");
  require_dims(function, name, x, 1);
  x.hold();
  return x;
}

std::optional<Side> parse_constant(nb::handle name) {
  if (name.is_none()) return std::nullopt;
  if (name.equal(nb::str("a"))) return Side::a;
  if (name.equal(nb::str("b"))) return Side::b;
  throw InvalidValue(std::string(function) + ": constant must be 'a', 'b' or None, got " + shown(name));
}

// What cannot serve the next call goes with this one, while its stream is there.
class UsedTarget {
 public:
  explicit UsedTarget(std::optional<Target>& target) : target_(target) {}
  ~UsedTarget() {
    if (target_ && !target_->reusable()) target_.reset();
  }
  UsedTarget(const UsedTarget&) = delete;
  UsedTarget& operator=(const UsedTarget&) = delete;

 private:
  std::optional<Target>& target_;
};

// A plan whose row does not take the new addresses waits for the device when it makes another workspace.
template <class Args>
void rebind(Plan<Args>& plan, const Args& args) {
  if (plan.device().kind != Device::cuda) return plan.rebind(args);
  const GilReleased released;
  plan.rebind(args);
}

float*& result_data(SgemmArgs& p) { return p.c.data; }
float*& result_data(SgemvArgs& p) { return p.y.data; }

}  // namespace

MatmulPlan::MatmulPlan(nb::handle a, nb::handle b, nb::handle c, nb::handle out, nb::handle alpha, nb::handle beta,
                       nb::handle trans_a, nb::handle trans_b, nb::handle kernel, nb::handle precision,
                       nb::handle device, nb::handle stream, nb::handle constant, nb::handle dtype)
    : c_(nb::borrow(c)),
      out_(nb::borrow(out)),
      kernel_name_(nb::borrow(kernel)),
      stream_(nb::borrow(stream)),
      alpha_(to_float32(function, "alpha", alpha)),
      beta_(to_float32(function, "beta", beta)),
      trans_a_(parse_flag(function, "trans_a", trans_a)),
      trans_b_(parse_flag(function, "trans_b", trans_b)),
      options_(parse_options(function, kernel, precision, device, stream)),
      device_name_(options_.device),
      other_types_(parse_dtype(function, dtype)) {
  options_.call.constant = parse_constant(constant);
  CallLocation location(device_name_, options_.call.stream, other_types_);
  a_ = operand(a, "a", location);
  b_ = operand(b, "b", location);
  require_matrix(function, "a", a_, trans_a_);
  require_matrix(function, "b", b_, trans_b_);
  with_problem(a_, b_, [&](auto&& problem) { shape_ = problem.shape; });
  checked_addend(function, {c_, "c"}, beta_, shape_, location);
  if (location.on_device())
    options_.call.device = {Device::cuda, location.device()}, options_.call.device_memory = true;
  const UsedTarget used(target_);
  bind(target_in(location).array(), location);
}

MatmulPlan::Layout MatmulPlan::layout_of(const Array& x) {
  Layout layout;
  for (int i = 0; i < x.ndim(); ++i) {
    layout.shape.push_back(x.shape(i));
    layout.strides.push_back(x.shape(i) > 1 ? x.stride(i) : 0);  // of one element it means nothing
  }
  return layout;
}

bool MatmulPlan::has_layout(const Array& x, const Layout& layout) {
  if (size_t(x.ndim()) != layout.shape.size()) return false;
  for (int i = 0; i < x.ndim(); ++i)
    if (x.shape(i) != layout.shape[size_t(i)] || (x.shape(i) > 1 && x.stride(i) != layout.strides[size_t(i)]))
      return false;
  return true;
}

void MatmulPlan::require_same_layout(const char* method, const char* name, const Array& planned, const Array& given) {
  const Layout wanted = layout_of(planned), got = layout_of(given);
  if (got == wanted) return;
  const auto text = [](const Layout& x) {
    return "shape " + to_string(x.shape) + " and strides " + to_string(x.strides) + " in elements";
  };
  throw InvalidValue(std::string(function) + "." + method + ": " + name + " has " + text(got) + "; the plan is for " +
                     text(wanted));
}

void MatmulPlan::require_live(const char* method) const {
  if (state_ == freed) throw InvalidValue(std::string(function) + "." + method + "() after free(): make a new plan");
}

// A call on the operands that are bound: where they lie, and what their libraries have queued since the last one.
void MatmulPlan::join(CallLocation& location) {
  read_again("a", a_, location);
  read_again("b", b_, location);
}

void MatmulPlan::read_again(const char* name, Array& x, CallLocation& location) {
  if (!x.has_to_be_read_again()) return x.join(name, location);
  Array again = operand(x.object(), name, location);
  require_same_layout("execute", name, x, again);
  if (again.data() != x.data()) target_.reset();  // it may overlap them now
  x = std::move(again);
}

void MatmulPlan::require_constant(const char* method, const Target& target, const Array& a, const Array& b) const {
  if (!options_.call.constant) return;
  const bool is_a = *options_.call.constant == Side::a;
  if (target.overlaps(is_a ? a : b))
    throw InvalidValue(std::string(function) + method + ": out overlaps " + (is_a ? "a" : "b") +
                       ", which is said to be constant");
}

Target& MatmulPlan::target_in(CallLocation& location) {
  if (target_) {
    target_->begin(location);
    return *target_;
  }
  target_.emplace(function, out_, shape_, std::initializer_list<const Array*>{&a_, &b_}, location);
  require_constant("", *target_, a_, b_);
  if (target_->reusable()) target_->hold();
  return *target_;
}

template <class Visit>
void MatmulPlan::with_problem(const Array& a, const Array& b, Visit&& visit) const {
  with_product_problem({function, alpha_, beta_, trans_a_, trans_b_, options_.precision}, a, b, visit);
}

// In a child of fork, after a method that was running in another thread of the parent: the plans are made anew.
void MatmulPlan::forget_unfinished() {
  if (state_ == planned) state_ = unplanned;
  target_.reset();
}

// Points the plans to the operands and to this result. There are none yet, or they are for another layout of the
// result: then they are made.
void MatmulPlan::bind(const Array& result, CallLocation& location) {
  if (state_ == unplanned || !has_layout(result, result_layout_)) plans_ = {};
  state_ = unplanned;  // should anything fail
  converted_.clear();
  Array a = a_.view(), b = b_.view();
  bool converted = false;
  with_problem(a_, b_, [&](const auto& problem) {
    Options options = options_;
    converted = convert(problem, result, {&a, &b}, options, location);
  });
  with_problem(a, b, [&]<class Args>(Problem<Args> problem) {
    if (!std::holds_alternative<Plans<Args>>(plans_)) plans_.emplace<Plans<Args>>();
    auto& plans = std::get<Plans<Args>>(plans_);
    size_t i = 0;
    problem.for_each_run(result, [&](const Args& args) {
      if (i < plans.size()) rebind(plans[i], args);
      else plans.push_back(make_plan(args, options_));
      ++i;
    });
  });
  if (converted) converted_.push_back(std::move(a)), converted_.push_back(std::move(b));
  result_layout_ = layout_of(result);
  a_data_ = a_.data(), b_data_ = b_.data(), result_data_ = result.data();
  state_ = planned;
}

void MatmulPlan::move_result(const Array& result) {
  const int64_t distance = result.data() - result_data_;
  for_each_plan([&](auto& plan) {
    auto args = plan.args();
    result_data(args) += distance;
    rebind(plan, args);
  });
  result_data_ = result.data();
}

void MatmulPlan::point_to(const Array& result, CallLocation& location) {
  const bool bound = state_ == planned && converted_.empty() && a_.data() == a_data_ && b_.data() == b_data_;
  if (!bound || !has_layout(result, result_layout_)) bind(result, location);
  else if (result.data() != result_data_) move_result(result);
}

void MatmulPlan::plan() {
  const Method method(*this);
  require_live("plan");
  if (state_ == planned) return;
  CallLocation location(device_name_, options_.call.stream, other_types_);
  join(location);
  const UsedTarget used(target_);
  bind(target_in(location).array(), location);
}

nb::object MatmulPlan::run_into(Target& target, CallLocation& location) {
  if (beta_ != 0.0f) target.preload(checked_addend(function, {c_, "c"}, beta_, shape_, location));
  point_to(target.array(), location);
  for_each_plan([&](auto& plan) { call(plan, location.stream()); });
  return target.finish();
}

nb::object MatmulPlan::execute(nb::handle stream) {
  const Method method(*this);
  require_live("execute");
  CallLocation location(device_name_, stream.is_none() ? options_.call.stream : parse_stream(stream), other_types_);
  join(location);
  const UsedTarget used(target_);
  try {
    return run_into(target_in(location), location);
  } catch (...) {
    state_ = unplanned;  // a plan that could not get its workspace has to be made anew
    throw;
  }
}

void MatmulPlan::reset_operands(nb::handle a_in, nb::handle b_in, nb::handle c_in, nb::handle out_in) {
  const Method method(*this);
  require_live("reset_operands");
  // All is checked before anything changes.
  CallLocation location(device_name_, options_.call.stream, other_types_);
  a_.join("the plan's a", location);
  std::optional<Array> a, b;
  if (!a_in.is_none()) require_same_layout("reset_operands", "a", a_, a.emplace(operand(a_in, "a", location)));
  if (!b_in.is_none()) require_same_layout("reset_operands", "b", b_, b.emplace(operand(b_in, "b", location)));
  if (!c_in.is_none()) checked_addend(function, {c_in, "c"}, beta_, shape_, location);
  const nb::object out = nb::borrow(out_in.is_none() ? nb::handle(out_) : out_in);
  std::optional<Target> target;
  if (!out.is_none() || state_ == planned)
    target.emplace(function, out, shape_, std::initializer_list<const Array*>{a ? &*a : &a_, b ? &*b : &b_}, location);
  if (target) require_constant(".reset_operands", *target, a ? *a : a_, b ? *b : b_);
  const bool renewed = options_.call.constant && (*options_.call.constant == Side::a ? a : b);
  if (a) a_ = std::move(*a);
  if (b) b_ = std::move(*b);
  if (!c_in.is_none()) c_ = nb::borrow(c_in);
  out_ = out;
  target_.reset();
  if (state_ == planned) bind(target->array(), location);
  if (renewed) for_each_plan([](auto& plan) { plan.renew_constant(); });
}

void MatmulPlan::free() {
  const Method method(*this);
  state_ = freed;  // first, as what follows may be cut off by a fork
  plans_ = {};
  target_.reset();
  a_ = Array(), b_ = Array();
  converted_.clear();
  c_.reset(), out_.reset(), stream_.reset();
}

}  // namespace fl::py
