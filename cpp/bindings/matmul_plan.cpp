#include "matmul_plan.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "errors.h"

namespace fl::py {
namespace {

constexpr const char* function = "Matmul";

// A copy of misaligned elements would not follow the changes of the original.
Array operand(nb::handle object, const char* name, Place& place) {
  Array x(object, name, Array::read, place);
  if (place.on_device())
    throw InvalidType(std::string(function) + ": " + name +
                      " lies in device memory; a plan takes arrays in host memory, fastlinalg.matmul takes both");
  if (!x.object().is(object))
    throw InvalidValue(std::string(function) + ": the elements of " + name +
                       " are not aligned to 4 bytes, which a plan cannot use; pass a copy");
  require_dims(function, name, x, 1);
  return x;
}

void require_matrix(const char* name, const Array& x, bool trans) {
  if (trans && x.ndim() < 2)
    throw InvalidValue(std::string(function) + ": trans_" + name + " needs a matrix, but " + name + " has shape " +
                       to_string(x.shape()));
}

constexpr const char* execute_doc = R"(Compute the product of the bound operands as they are now.

Parameters
----------
stream : int or object with ``__cuda_stream__``, optional
    Instead of the stream that the plan was made with.

Returns
-------
array
    `out`, or a new array of the kind that `fastlinalg.matmul` returns.

Raises
------
ValueError
    The plan has been freed.
MemoryError, CudaError
    As for `fastlinalg.matmul`.)";

float*& result_data(SgemmArgs& p) { return p.c.data; }
float*& result_data(SgemvArgs& p) { return p.y.data; }

}  // namespace

MatmulPlan::MatmulPlan(nb::handle a, nb::handle b, nb::handle c, nb::handle out, float alpha, float beta, bool trans_a,
                       bool trans_b, nb::handle kernel, const char* precision, const char* device, nb::handle stream)
    : place_("auto", nullptr),
      a_(operand(a, "a", place_)),
      b_(operand(b, "b", place_)),
      c_(nb::borrow(c)),
      out_(nb::borrow(out)),
      kernel_name_(nb::borrow(kernel)),
      stream_(nb::borrow(stream)),
      alpha_(alpha),
      beta_(beta),
      trans_a_(trans_a),
      trans_b_(trans_b),
      options_(parse_options(function, kernel, precision, device, stream)) {
  require_matrix("a", a_, trans_a);
  require_matrix("b", b_, trans_b);
  with_problem(a_, b_, [&](auto&& problem) { shape_ = problem.shape; });
  checked_addend(function, {c_, "c"}, beta_, shape_, place_);
  if (!out.is_none()) target_.emplace(function, out, shape_, std::initializer_list<const Array*>{&a_, &b_}, place_);
}

MatmulPlan::Layout MatmulPlan::layout_of(const Array& x) {
  Layout layout;
  for (int i = 0; i < x.ndim(); ++i) {
    layout.shape.push_back(x.shape(i));
    layout.strides.push_back(x.shape(i) > 1 ? x.stride(i) : 0);  // of one element it means nothing
  }
  return layout;
}

void MatmulPlan::require_same_layout(const char* name, const Array& planned, const Array& given) {
  const Layout wanted = layout_of(planned), got = layout_of(given);
  if (got == wanted) return;
  const auto text = [](const Layout& x) {
    return "shape " + to_string(x.shape) + " and strides " + to_string(x.strides) + " in elements";
  };
  throw InvalidValue(std::string(function) + ".reset_operands: " + name + " has " + text(got) + "; the plan is for " +
                     text(wanted));
}

void MatmulPlan::require_live(const char* method) const {
  if (state_ == freed) throw InvalidValue(std::string(function) + "." + method + "() after free(): make a new plan");
}

Target MatmulPlan::fresh_target() { return Target(function, nb::none(), shape_, {&a_, &b_}, place_); }

template <class Visit>
void MatmulPlan::with_problem(const Array& a, const Array& b, Visit&& visit) const {
  const bool row = a.ndim() == 1, column = b.ndim() == 1;
  if (!row && !column)
    return visit(gemm_problem(function, a, b, alpha_, beta_, trans_a_, trans_b_, options_.precision));
  if (!row) return visit(gemv_problem(function, a, b, alpha_, beta_, trans_a_));
  if (!column) return visit(gemv_problem(function, b, a, alpha_, beta_, !trans_b_));
  auto problem = dot_problem(function, a, b);
  problem.args.alpha = alpha_, problem.args.beta = beta_;
  visit(std::move(problem));
}

template <class Visit>
void MatmulPlan::for_each_plan(Visit&& visit) {
  const auto each = [&](auto& plans) {
    for (auto& plan : plans) visit(plan);
  };
  std::visit(each, plans_);
}

template <class Visit>
nb::object MatmulPlan::first_plan(Visit&& visit) {
  nb::object result = nb::none();
  for_each_plan([&](const auto& plan) {
    if (result.is_none() && *plan.kernel()) result = visit(plan);
  });
  return result;
}

// Points the plans to the operands and to this result. There are none yet, or they are for another layout of the result:
// then they are made.
void MatmulPlan::bind(const Array& result) {
  Layout layout = layout_of(result);
  if (state_ == unplanned || layout != result_layout_) plans_ = {};
  state_ = unplanned;  // should anything fail
  with_problem(a_, b_, [&]<class Args>(Problem<Args> problem) {
    if (!std::holds_alternative<Plans<Args>>(plans_)) plans_.emplace<Plans<Args>>();
    auto& plans = std::get<Plans<Args>>(plans_);
    size_t i = 0;
    problem.for_each_run(result, [&](const Args& args) {
      if (i < plans.size()) plans[i].rebind(args);
      else plans.push_back(make_plan(args, options_));
      ++i;
    });
  });
  result_layout_ = std::move(layout);
  result_data_ = result.data();
  state_ = planned;
}

void MatmulPlan::move_result(const Array& result) {
  const int64_t distance = result.data() - result_data_;
  for_each_plan([&](auto& plan) {
    auto args = plan.args();
    result_data(args) += distance;
    plan.rebind(args);
  });
  result_data_ = result.data();
}

void MatmulPlan::plan() {
  const Turn turn(mutex_);
  require_live("plan");
  if (state_ == planned) return;
  if (target_) return bind(target_->array());
  const Target sample = fresh_target();
  bind(sample.array());
}

nb::object MatmulPlan::run_into(Target& target, void* stream) {
  if (beta_ != 0.0f) target.preload(checked_addend(function, {c_, "c"}, beta_, shape_, place_));
  for_each_plan([&](auto& plan) { call(plan, stream); });
  return target.finish();
}

nb::object MatmulPlan::execute(nb::handle stream_in) {
  const Turn turn(mutex_);
  require_live("execute");
  void* const stream = stream_in.is_none() ? options_.call.stream : parse_stream(stream_in);
  try {
    if (target_) {
      if (state_ == unplanned) bind(target_->array());
      return run_into(*target_, stream);
    }
    Target target = fresh_target();
    if (state_ == unplanned || layout_of(target.array()) != result_layout_) bind(target.array());
    else move_result(target.array());
    nb::object result = run_into(target, stream);
    return shape_.empty() && place_.library().kind == Library::numpy ? nb::object(result[nb::make_tuple()])
                                                                     : result;  // a scalar, as NumPy returns one
  } catch (...) {
    state_ = unplanned;  // a plan that could not get its workspace has to be made anew
    throw;
  }
}

void MatmulPlan::reset_operands(nb::handle a_in, nb::handle b_in, nb::handle c_in, nb::handle out_in) {
  const Turn turn(mutex_);
  require_live("reset_operands");
  // All is checked before anything changes.
  std::optional<Array> a, b;
  if (!a_in.is_none()) require_same_layout("a", a_, a.emplace(operand(a_in, "a", place_)));
  if (!b_in.is_none()) require_same_layout("b", b_, b.emplace(operand(b_in, "b", place_)));
  if (!c_in.is_none()) checked_addend(function, {c_in, "c"}, beta_, shape_, place_);
  const nb::object out = nb::borrow(out_in.is_none() ? nb::handle(out_) : out_in);
  std::optional<Target> target;
  if (!out.is_none())
    target.emplace(function, out, shape_, std::initializer_list<const Array*>{a ? &*a : &a_, b ? &*b : &b_}, place_);
  if (a) a_ = std::move(*a);
  if (b) b_ = std::move(*b);
  if (!c_in.is_none()) c_ = nb::borrow(c_in);
  out_ = out;
  target_ = std::move(target);
  if (state_ == unplanned) return;
  if (target_) return bind(target_->array());
  const Target sample = fresh_target();
  bind(sample.array());
}

void MatmulPlan::free() {
  const Turn turn(mutex_);
  plans_ = {};
  target_.reset();
  a_ = Array(), b_ = Array();
  place_ = Place("auto", nullptr);
  c_.reset(), out_.reset(), stream_.reset();
  state_ = freed;
}

nb::object MatmulPlan::kernel() {
  const Turn turn(mutex_);
  return first_plan([](const auto& plan) { return nb::str(plan.kernel()); });
}

nb::object MatmulPlan::device() {
  const Turn turn(mutex_);
  return first_plan([](const auto& plan) {
    const Device device = plan.device();
    return nb::str(device.kind == Device::cpu ? "cpu" : ("cuda:" + std::to_string(device.ordinal)).c_str());
  });
}

size_t MatmulPlan::workspace_bytes() {
  const Turn turn(mutex_);
  size_t bytes = 0;
  for_each_plan([&](const auto& plan) { bytes += plan.workspace_bytes(); });
  return bytes;
}

std::string MatmulPlan::repr() {
  std::string state = "freed";
  if (state_ != freed) state = to_string(a_.shape()) + " @ " + to_string(b_.shape()) + " -> " + to_string(shape_);
  if (state_ == unplanned) state += ", not planned";
  if (state_ == planned) state += ", kernel=" + text(nb::repr(kernel())) + ", device=" + text(nb::repr(device()));
  return "fastlinalg.Matmul(" + state + ")";
}

void bind_matmul_plan(nb::module_& m) {
  using nb::arg;
  nb::class_<MatmulPlan>(m, "MatmulPlan", "What fastlinalg.Matmul is built on.")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, float, float, bool, bool, nb::handle, const char*,
                    const char*, nb::handle>(),
           arg("a"), arg("b"), arg("c").none(), arg("out").none(), arg("alpha"), arg("beta"), arg("trans_a"),
           arg("trans_b"), arg("kernel").none(), arg("precision"), arg("device"), arg("stream").none())
      .def("plan", &MatmulPlan::plan)
      .def("execute", &MatmulPlan::execute, nb::kw_only(), arg("stream") = nb::none(), execute_doc)
      .def("_reset_operands", &MatmulPlan::reset_operands, arg("a").none(), arg("b").none(), arg("c").none(),
           arg("out").none())
      .def("free", &MatmulPlan::free)
      .def("__repr__", &MatmulPlan::repr)
      .def_prop_ro("kernel", &MatmulPlan::kernel)
      .def_prop_ro("device", &MatmulPlan::device)
      .def_prop_ro("workspace_bytes", &MatmulPlan::workspace_bytes);
}

}  // namespace fl::py
