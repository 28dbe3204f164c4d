// matmul, sgemm, sgemv and transpose on Python objects: check the operands, make the problem, run it.
#include "bindings/calls/products.h"

#include "bindings/calls/compute.h"
#include "core/errors.h"

namespace fl::py {
namespace {

nb::object dot(const char* function, const Array& a, const Array& b, nb::handle out, Options& options,
               CallLocation& location) {
  nb::object result = compute(dot_problem(function, a, b), {}, out, {&a, &b}, options, location);
  return out.is_none() && location.library().kind == Library::numpy ? nb::object(result[nb::make_tuple()])
                                                                    : result;  // a scalar, as NumPy returns one
}

bool onto_itself(TransposeArgs args, const Options& options) {
  args.b = {const_cast<float*>(args.a.data), args.a.rs, args.a.cs};
  return transposes_in_place(args, options.call);
}

}  // namespace

nb::object matmul(nb::handle a_in, nb::handle b_in, nb::handle out, nb::handle precision, nb::handle device,
                  nb::handle stream) {
  constexpr const char* function = "matmul";
  Options options = parse_options(function, nb::none(), precision, device, stream);
  CallLocation location(options.device, options.call.stream);
  const Array a(a_in, "a", Array::read, location), b(b_in, "b", Array::read, location);
  require_dims(function, "a", a, 1);
  require_dims(function, "b", b, 1);
  if (a.ndim() == 1 && b.ndim() == 1) return dot(function, a, b, out, options, location);
  if (b.ndim() == 1)
    return compute(gemv_problem(function, a, b, 1.0f, 0.0f, false), {}, out, {&a, &b}, options, location);
  if (a.ndim() == 1)
    return compute(gemv_problem(function, b, a, 1.0f, 0.0f, true), {}, out, {&a, &b}, options, location);
  return compute(gemm_problem(function, a, b, 1.0f, 0.0f, false, false, options.precision), {}, out, {&a, &b}, options,
                 location);
}

nb::object sgemm(nb::handle a_in, nb::handle b_in, nb::handle c, nb::handle alpha, nb::handle beta, nb::handle trans_a,
                 nb::handle trans_b, nb::handle out, nb::handle kernel, nb::handle precision, nb::handle device,
                 nb::handle stream) {
  constexpr const char* function = "sgemm";
  Options options = parse_options(function, kernel, precision, device, stream);
  CallLocation location(options.device, options.call.stream);
  const Array a(a_in, "a", Array::read, location), b(b_in, "b", Array::read, location);
  require_dims(function, "a", a, 2);
  require_dims(function, "b", b, 2);
  return compute(gemm_problem(function, a, b, to_float32(function, "alpha", alpha), to_float32(function, "beta", beta),
                              parse_flag(function, "trans_a", trans_a), parse_flag(function, "trans_b", trans_b),
                              options.precision),
                 {c, "c"}, out, {&a, &b}, options, location);
}

nb::object sgemv(nb::handle a_in, nb::handle x_in, nb::handle y, nb::handle alpha, nb::handle beta, nb::handle trans,
                 nb::handle out, nb::handle kernel, nb::handle device, nb::handle stream) {
  constexpr const char* function = "sgemv";
  Options options = parse_options(function, kernel, {}, device, stream);
  CallLocation location(options.device, options.call.stream);
  const Array a(a_in, "a", Array::read, location), x(x_in, "x", Array::read, location);
  require_dims(function, "a", a, 2);
  require_dims(function, "x", x, 1);
  return compute(gemv_problem(function, a, x, to_float32(function, "alpha", alpha), to_float32(function, "beta", beta),
                              parse_flag(function, "trans", trans)),
                 {y, "y"}, out, {&a, &x}, options, location);
}

nb::object transpose(nb::handle a_in, nb::handle out, nb::handle kernel, nb::handle device, nb::handle stream) {
  constexpr const char* function = "transpose";
  Options options = parse_options(function, kernel, {}, device, stream);
  CallLocation location(options.device, options.call.stream);
  const Array a(a_in, "a", Array::read, location);
  require_dims(function, "a", a, 2);
  Problem<TransposeArgs> problem = transpose_problem(function, a);
  set_location(options.call, location);
  const bool in_place = !out.is_none() && onto_itself(problem.args, options);
  Target target(function, out, problem.shape, {&a}, location, in_place ? &a : nullptr);
  problem.args.in_place = target.replaces();
  set_location(options.call, location);  // `out` may have been the first to bring a stream
  problem.for_each_run(target.array(), [&](const TransposeArgs& args) { call(args, options); });
  return target.finish();
}

}  // namespace fl::py
