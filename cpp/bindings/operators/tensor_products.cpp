#include <algorithm>
#include <cmath>
#include <span>

#include "bindings/calls/bind.h"
#include "bindings/calls/compute.h"
#include "bindings/operators/weights.h"
#include "core/errors.h"
#include "dispatch/dispatch.h"

namespace fl::py {
namespace {

constexpr const char* product_function = "product";

struct Scalars {
  float alpha, beta;
};

bool multiplies_vector(int b_dims) { return b_dims == 1; }

nb::object product(Array& a, Array& b, nb::handle c, nb::handle out, Scalars s, Options& options,
                   CallLocation& location) {
  const ProductTerms terms{
      .function = product_function, .alpha = s.alpha, .beta = s.beta, .precision = options.precision};
  return compute_converted([&](auto visit) { return with_product_problem(terms, a, b, visit); },
                           {nb::borrow(c), "c", true}, out, {&a, &b}, options, location);
}

// ---------------------------------------------------------------- what is for fastlinalg
// An operand as torch's table shows it; false if it cannot.
bool look(nb::handle object, dl::Tensor& tensor) {
  if (torch_in_operator().api->tensor_from_object(object.ptr(), &tensor) == 0) return true;
  PyErr_Clear();
  return false;
}

std::span<const int64_t> shape_of(const dl::Tensor& x) { return {x.shape, size_t(x.ndim)}; }

bool broadcasts_to(const dl::Tensor& x, std::span<const int64_t> shape) {
  if (size_t(x.ndim) > shape.size()) return false;
  const auto last = shape.last(size_t(x.ndim));
  return std::equal(last.begin(), last.end(), x.shape,
                    [](int64_t to, int64_t from) { return from == 1 || from == to; });
}

bool repeats_elements(const dl::Tensor& x) {
  for (int i = 0; i < x.ndim; ++i)
    if (x.shape[i] > 1 && x.strides && x.strides[i] == 0) return true;
  return false;
}

// The result's shape, empty if the operands do not fit each other.
Shape result_shape(const dl::Tensor& a, const dl::Tensor& b) {
  if (multiplies_vector(b.ndim)) return a.ndim == 2 && a.shape[1] == b.shape[0] ? Shape{a.shape[0]} : Shape{};
  if (a.ndim != b.ndim || a.ndim < 2 || a.shape[a.ndim - 1] != b.shape[a.ndim - 2]) return {};
  if (!std::equal(a.shape, a.shape + a.ndim - 2, b.shape)) return {};
  Shape shape(a.shape, a.shape + a.ndim - 1);
  shape.push_back(b.shape[b.ndim - 1]);
  return shape;
}

struct Operands {
  dl::Tensor a, b, c, out;
  bool has_c, has_out;
  template <class Check>
  bool all(Check&& check) const {
    return check(a) && check(b) && (!has_c || check(c)) && (!has_out || check(out));
  }
};

// nullptr if these are operands for fastlinalg.
const char* why_not(const Operands& x, bool anywhere) {
  if (!x.all([](const dl::Tensor& t) { return t.dtype == dl::float32; })) return "dtype";
  if (!anywhere && x.a.device.type != dl::cuda) return "device";
  if (!x.all([&](const dl::Tensor& t) { return t.device.type == x.a.device.type && t.device.id == x.a.device.id; }))
    return "device";
  const Shape shape = result_shape(x.a, x.b);
  if (shape.empty()) return "shape";
  const auto same = shape_of(x.out);
  if (x.has_out && (!std::equal(shape.begin(), shape.end(), same.begin(), same.end()) || repeats_elements(x.out)))
    return "shape";
  if (x.has_c && !broadcasts_to(x.c, shape)) return "shape";
  const auto empty = [](int64_t size) { return size == 0; };
  if (std::ranges::any_of(shape, empty) || std::ranges::any_of(shape_of(x.a), empty)) return "empty";
  return nullptr;
}

// What a product takes in PyTorch at the least, in microseconds: cuBLAS reaches 0.8 of the FMA pipes' peak in float32
// at best, and with its launch no call was seen to take less than 4 us where ours was the slower one. With that, ours
// was taken in one of 200 random shapes where it was the slower one, by 3 %
// (d20a117:benchmarks/results/h200-random-accurate.json beside that of strict).
constexpr double launch_us = 4.0, cublas_peak = 0.8;
double least_cublas_us(const SgemmArgs& p, const DeviceSpec& spec) {
  return launch_us + double(p.m) * double(p.n) * double(p.k) * double(p.batch) / (cublas_peak * spec.fma_per_us());
}
double least_cublas_us(const SgemvArgs& p, const DeviceSpec& spec) {
  return launch_us + sizeof(float) * double(p.m) * double(p.n) / spec.bytes_per_us;
}

template <class Args>
bool pays(const Args& args, const CallOptions& options) {
  return expected_us(args, options) <= least_cublas_us(args, spec_of(options.device));
}

// As if it were written to a new result: where that lies decides little.
bool pays(const Array& a, const Array& b, Scalars s, const Options& options, const CallLocation& location) {
  CallOptions call = options.call;
  set_location(call, location);
  if (multiplies_vector(b.ndim())) {
    SgemvArgs p = gemv_problem(product_function, a, b, s.alpha, s.beta, false).args;
    p.y = {nullptr, 1};
    return pays(p, call);
  }
  SgemmArgs p = gemm_problem(product_function, a, b, s.alpha, s.beta, false, false, options.precision).args;
  p.c = {nullptr, p.n, 1, p.m * p.n};
  if (a.ndim() == 3) p.batch = a.shape(0), p.a.bs = a.stride(0), p.b.bs = b.stride(0);
  return pays(p, call);
}

// False for what no float32 product takes: complex numbers, finite ones beyond the range, numbers of other libraries.
bool read_scalar(nb::handle object, float& value) {
  if (!PyFloat_Check(object.ptr()) && !PyLong_Check(object.ptr())) return false;
  const double exact = PyFloat_AsDouble(object.ptr());
  if (PyErr_Occurred()) PyErr_Clear();  // an int beyond float64
  else if (value = float(exact); !std::isinf(value) || std::isinf(exact)) return true;
  return false;
}

}  // namespace

nb::object tensor_product(nb::handle a_in, nb::handle b_in, nb::handle c, nb::handle out, nb::handle alpha,
                          nb::handle beta, std::string_view precision, bool converts) {
  Options options;
  options.precision = parse_precision(precision);
  CallLocation location(CallLocation::Operator{});
  if (converts) location.set_other_types(OtherTypes::convert);
  Array a(a_in, "a", Array::read, location), b(b_in, "b", Array::read, location);
  require_dims(product_function, "a", a, multiplies_vector(b.ndim()) ? 1 : 2);
  return product(a, b, c, out,
                 {to_float32(product_function, "alpha", alpha), to_float32(product_function, "beta", beta)}, options,
                 location);
}

nb::object tensor_rows_product(nb::handle x_in, nb::handle b_in, nb::handle c, bool trans_b, std::string_view precision,
                               bool converts) {
  Options options;
  options.precision = parse_precision(precision);
  CallLocation location(CallLocation::Operator{});
  if (converts) location.set_other_types(OtherTypes::convert);
  Array x(x_in, "a", Array::read, location), b(b_in, "b", Array::read, location);
  require_dims(product_function, "a", x, 1);
  require_dims(product_function, "b", b, 2);
  if (b.ndim() > 2) throw InvalidValue("b must have 2 dimensions");
  Shape shape(x.shape().begin(), x.shape().end() - 1);
  shape.push_back(b.shape(trans_b ? 0 : 1));
  if (!x.join_rows()) {
    x = Array(x_in.attr("contiguous")(), "a", Array::read, location);
    x.join_rows();
  }
  const float beta = c.is_none() ? 0.0f : 1.0f;
  const auto problem = [&] {
    return gemm_problem(product_function, x, b, 1.0f, beta, false, trans_b, options.precision);
  };
  Target target(product_function, nb::none(), shape, {}, location);
  target.join_rows();
  return compute_converted([&](auto visit) { return visit(problem()); }, {c, "c"}, nb::none(), {&x, &b}, options,
                           location, std::move(target));
}

nb::object tensor_product_if_faster(nb::handle a_in, nb::handle b_in, nb::handle c, nb::handle out, nb::handle alpha,
                                    nb::handle beta, std::string_view precision, bool anywhere, nb::handle weights) {
  Scalars scalars;
  if (!read_scalar(alpha, scalars.alpha) || !read_scalar(beta, scalars.beta)) return nb::str("scalar");
  Operands seen{.a = {}, .b = {}, .c = {}, .out = {}, .has_c = !c.is_none(), .has_out = !out.is_none()};
  if (!look(a_in, seen.a) || !look(b_in, seen.b) || (seen.has_c && !look(c, seen.c)) ||
      (seen.has_out && !look(out, seen.out)))
    return nb::str("no memory");
  if (const char* why = why_not(seen, anywhere)) return nb::str(why);

  Options options;
  options.precision = parse_precision(precision);
  CallLocation location(CallLocation::Operator{});
  Array a(a_in, "a", Array::read, location), b(b_in, "b", Array::read, location);
  const bool asked_for_anyway = anywhere || options.precision != Precision::accurate;
  if (!asked_for_anyway && !pays(a, b, scalars, options, location)) return nb::str("faster");
  const std::shared_ptr<ConstantOperand> constant = constant_operand(weights, seen.a, seen.b);
  options.call.constant_operand = constant.get();
  return product(a, b, c, out, scalars, options, location);
}

}  // namespace fl::py
