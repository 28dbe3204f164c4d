// matmul, sgemm, ssyrk, sgemv and transpose on Python objects: check the operands, make the problem, run it.
#include "bindings/calls/bind.h"
#include "bindings/calls/compute.h"
#include "core/errors.h"

namespace fl::py {
namespace {

using Inputs = std::array<Array*, 2>;

bool onto_itself(TransposeArgs args, const Options& options) {
  args.b = {const_cast<float*>(args.a.data), args.a.rs, args.a.cs};
  return transposes_in_place(args, options.call);
}

// NumPy's transpose has the order of the axes in that place.
void refuse_axes(const char* function, nb::handle out) {
  if (PyTuple_Check(out.ptr()) || PyList_Check(out.ptr()))
    throw InvalidType(
        std::string(function) + ": out must be a float32 array, got " + shown(out) +
        "; axes cannot be given, as the last two are swapped: np.ascontiguousarray(np.transpose(a, axes))" +
        " makes a copy with the axes in any order");
}

// Of a product with its own transpose. What the target has in the other triangle stays, in a new one it is zero.
nb::object compute_triangle(Problem<SgemmArgs> problem, Triangle part, nb::handle addend, Target& target,
                            Options& options, CallLocation& location) {
  const float beta = problem.args.beta;
  const Array c = checked_addend(problem.function, {addend, "c"}, beta, problem.shape, location);
  const bool adds_another = beta != 0.0f && !target.is(c);
  if (adds_another && target.overlaps(c)) target.stage();
  target.load_out();
  if (adds_another) set_addend(problem, c);
  set_location(options.call, location);
  const OtherTriangle other_triangle = target.fresh() ? OtherTriangle::zero : OtherTriangle::kept;
  problem.for_each_run(target.array(),
                       [&](const SgemmArgs& args) { call_triangle(args, part, other_triangle, options); });
  return target.finish();
}

}  // namespace

nb::object matmul(nb::handle a_in, nb::handle b_in, nb::handle out, nb::handle precision, nb::handle device,
                  nb::handle stream, nb::handle dtype) {
  constexpr const char* function = "matmul";
  Options options = parse_options(function, nb::none(), precision, device, stream);
  CallLocation location(options.device, options.call.stream, parse_dtype(function, dtype));
  Array a(a_in, "a", Array::read, location), b(b_in, "b", Array::read, location);
  require_dims(function, "a", a, 1);
  require_dims(function, "b", b, 1);
  return compute_converted(
      [&](auto visit) {
        return with_product_problem({.function = function, .precision = options.precision}, a, b, visit);
      },
      {}, out, Inputs{&a, &b}, options, location);
}

nb::object sgemm(nb::handle a_in, nb::handle b_in, nb::handle c, nb::handle alpha, nb::handle beta, nb::handle trans_a,
                 nb::handle trans_b, nb::handle out, nb::handle kernel, nb::handle precision, nb::handle device,
                 nb::handle stream, nb::handle dtype) {
  constexpr const char* function = "sgemm";
  Options options = parse_options(function, kernel, precision, device, stream);
  CallLocation location(options.device, options.call.stream, parse_dtype(function, dtype));
  Array a(a_in, "a", Array::read, location), b(b_in, "b", Array::read, location);
  require_dims(function, "a", a, 2);
  require_dims(function, "b", b, 2);
  const float scale = to_float32(function, "alpha", alpha), scale_c = to_float32(function, "beta", beta);
  const bool of_a = parse_flag(function, "trans_a", trans_a), of_b = parse_flag(function, "trans_b", trans_b);
  return compute_converted(
      [&](auto visit) { return visit(gemm_problem(function, a, b, scale, scale_c, of_a, of_b, options.precision)); },
      {c, "c"}, out, Inputs{&a, &b}, options, location);
}

nb::object ssyrk(nb::handle a_in, nb::handle c, nb::handle alpha, nb::handle beta, nb::handle trans, nb::handle uplo,
                 nb::handle out, nb::handle kernel, nb::handle precision, nb::handle device, nb::handle stream,
                 nb::handle dtype) {
  constexpr const char* function = "ssyrk";
  Options options = parse_options(function, kernel, precision, device, stream);
  CallLocation location(options.device, options.call.stream, parse_dtype(function, dtype));
  Array a(a_in, "a", Array::read, location);
  require_dims(function, "a", a, 2);
  const float scale = to_float32(function, "alpha", alpha), scale_c = to_float32(function, "beta", beta);
  const bool of_a = parse_flag(function, "trans", trans);
  const std::optional<Triangle> part = parse_uplo(function, uplo);
  const auto make = [&] { return gemm_problem(function, a, a, scale, scale_c, of_a, !of_a, options.precision); };
  if (!part)
    return compute_converted([&](auto visit) { return visit(make()); }, {c, "c"}, out, Inputs{&a, &a}, options,
                             location);
  Problem<SgemmArgs> problem = make();
  Target target(function, out, problem.shape, {&a}, location);
  bool converted = convert(problem, target.array(), Inputs{&a, &a}, options, location);
  if (!converted && problem.args.a.cs != 1 && !location.on_device() && options.call.device.kind != Device::cuda) {
    a.convert();  // the last row of a triangle may be summed by itself, in an order that the stride decides
    converted = true;
  }
  if (converted) problem = make();
  return compute_triangle(std::move(problem), *part, c, target, options, location);
}

nb::object sgemv(nb::handle a_in, nb::handle x_in, nb::handle y, nb::handle alpha, nb::handle beta, nb::handle trans,
                 nb::handle out, nb::handle kernel, nb::handle device, nb::handle stream, nb::handle dtype) {
  constexpr const char* function = "sgemv";
  Options options = parse_options(function, kernel, {}, device, stream);
  CallLocation location(options.device, options.call.stream, parse_dtype(function, dtype));
  Array a(a_in, "a", Array::read, location), x(x_in, "x", Array::read, location);
  require_dims(function, "a", a, 2);
  require_dims(function, "x", x, 1);
  const float scale = to_float32(function, "alpha", alpha), scale_y = to_float32(function, "beta", beta);
  const bool of_a = parse_flag(function, "trans", trans);
  return compute_converted([&](auto visit) { return visit(gemv_problem(function, a, x, scale, scale_y, of_a)); },
                           {y, "y"}, out, Inputs{&a, &x}, options, location);
}

nb::object transpose(nb::handle a_in, nb::handle out, nb::handle kernel, nb::handle device, nb::handle stream,
                     nb::handle dtype) {
  constexpr const char* function = "transpose";
  refuse_axes(function, out);
  Options options = parse_options(function, kernel, {}, device, stream);
  CallLocation location(options.device, options.call.stream, parse_dtype(function, dtype));
  Array a(a_in, "a", Array::read, location);
  require_dims(function, "a", a, 2);
  Problem<TransposeArgs> problem = transpose_problem(function, a);
  const Array any_result(static_cast<float*>(nullptr), problem.shape);  // elements are moved alike in any parts
  if (convert(problem, any_result, Inputs{&a, nullptr}, options, location)) problem = transpose_problem(function, a);
  set_location(options.call, location);
  const bool may_replace = !out.is_none() && !problem.args.stored[0].converted();
  const bool in_place = may_replace && onto_itself(problem.args, options);
  Target target(function, out, problem.shape, {&a}, location, in_place ? &a : nullptr);
  problem.args.in_place = target.replaces();
  set_location(options.call, location);  // `out` may have been the first to bring a stream
  problem.for_each_run(target.array(), [&](const TransposeArgs& args) { call(args, options); });
  return target.finish();
}

}  // namespace fl::py
