// matmul, sgemm, sgemv and transpose on NumPy arrays: shapes, broadcasting and strides become problem structs here.
#include "products.h"

#include "batch.h"
#include "call.h"
#include "errors.h"

namespace fl::py {
namespace {

// The last two dimensions of a stack of matrices, transposed on request.
struct MatrixDims {
  int64_t rows, cols, rs, cs;
  MatrixDims(const Array& x, bool trans) {
    const int r = x.ndim() - 2, c = x.ndim() - 1;
    rows = x.shape(r), cols = x.shape(c), rs = x.stride(r), cs = x.stride(c);
    if (trans) std::swap(rows, cols), std::swap(rs, cs);
  }
};

void require_dims(const char* function, const char* name, const Array& x, int least) {
  if (x.ndim() < least)
    throw InvalidValue(std::string(function) + ": " + name + " must have at least " + std::to_string(least) +
                       " dimension" + (least > 1 ? "s" : "") + ", got shape " + to_string(x.shape()));
}

[[noreturn]] void mismatch(const char* function, const Array& a, const char* a_what, int64_t a_size, const Array& b,
                           const char* b_what, int64_t b_size) {
  throw InvalidValue(std::string(function) + ": operands with shapes " + to_string(a.shape()) + " and " +
                     to_string(b.shape()) + " do not match: " + a_what + " is " + std::to_string(a_size) + ", " +
                     b_what + " is " + std::to_string(b_size));
}

Array require_addend(const char* function, const char* name, nb::handle object, const Shape& shape) {
  Array c(object, name, Array::read);
  if (!std::equal(shape.begin(), shape.end(), c.shape().begin(), c.shape().end()))
    throw InvalidValue(std::string(function) + ": " + name + " has shape " + to_string(c.shape()) +
                       ", the result needs " + to_string(shape));
  return c;
}

// Loads beta's operand into the target; a missing one with beta != 0 is an error.
void preload(const char* function, const char* name, nb::handle object, float beta, const Shape& shape,
             Target& target) {
  if (object.is_none()) {
    if (beta != 0.0f)
      throw InvalidValue(std::string(function) + ": beta=" + std::to_string(beta) + " needs " + name +
                         ", which was not given");
    return;
  }
  const Array addend = require_addend(function, name, object, shape);
  if (beta != 0.0f) target.preload(addend);
}

nb::object gemm(const char* function, const Array& a, const Array& b, nb::handle c, float alpha, float beta,
                bool trans_a, bool trans_b, nb::handle out, const Options& options) {
  const MatrixDims da(a, trans_a), db(b, trans_b);
  if (da.cols != db.rows)
    mismatch(function, a, "the number of columns of op(a)", da.cols, b, "the number of rows of op(b)", db.rows);
  Batch batch({{&a, a.ndim() - 2}, {&b, b.ndim() - 2}}, function);
  Shape shape = batch.sizes();
  shape.push_back(da.rows);
  shape.push_back(db.cols);

  Target target(function, out, shape, {&a, &b});
  preload(function, "c", c, beta, shape, target);
  const Array& result = target.array();
  const MatrixDims dc(result, false);
  batch.add(result);
  batch.for_each_run([&](int64_t count, const int64_t* offsets, const int64_t* strides) {
    call(SgemmArgs{.m = da.rows,
                   .n = db.cols,
                   .k = da.cols,
                   .batch = count,
                   .alpha = alpha,
                   .beta = beta,
                   .a = {a.data() + offsets[0], da.rs, da.cs, strides[0]},
                   .b = {b.data() + offsets[1], db.rs, db.cs, strides[1]},
                   .c = {result.data() + offsets[2], dc.rs, dc.cs, strides[2]},
                   .precision = options.precision},
         options);
  });
  return target.finish();
}

nb::object gemv(const char* function, const Array& a, const Array& x, nb::handle y, float alpha, float beta, bool trans,
                nb::handle out, const Options& options) {
  const MatrixDims da(a, trans);
  const int last = x.ndim() - 1;
  if (da.cols != x.shape(last))
    mismatch(function, a, "the number of columns of op(a)", da.cols, x, "the size of x", x.shape(last));
  Batch batch({{&a, a.ndim() - 2}, {&x, last}}, function);
  Shape shape = batch.sizes();
  shape.push_back(da.rows);

  Target target(function, out, shape, {&a, &x});
  preload(function, "y", y, beta, shape, target);
  const Array& result = target.array();
  const int64_t inc = result.stride(result.ndim() - 1);
  batch.add(result);
  batch.for_each_run([&](int64_t count, const int64_t* offsets, const int64_t* strides) {
    call(SgemvArgs{.m = da.rows,
                   .n = da.cols,
                   .batch = count,
                   .alpha = alpha,
                   .beta = beta,
                   .a = {a.data() + offsets[0], da.rs, da.cs, strides[0]},
                   .x = {x.data() + offsets[1], x.stride(last), strides[1]},
                   .y = {result.data() + offsets[2], inc, strides[2]}},
         options);
  });
  return target.finish();
}

nb::object dot(const char* function, const Array& a, const Array& b, nb::handle out, const Options& options) {
  if (a.shape(0) != b.shape(0)) mismatch(function, a, "the size of a", a.shape(0), b, "the size of b", b.shape(0));
  Target target(function, out, {}, {&a, &b});
  call(SgemvArgs{.m = 1,
                 .n = a.shape(0),
                 .a = {a.data(), 0, a.stride(0), 0},
                 .x = {b.data(), b.stride(0), 0},
                 .y = {target.array().data(), 1, 0}},
       options);
  nb::object result = target.finish();
  return out.is_none() ? nb::object(result[nb::make_tuple()]) : result;  // a scalar, as NumPy returns one
}

}  // namespace

nb::object matmul(nb::handle a_in, nb::handle b_in, nb::handle out, const char* precision, const char* device,
                  nb::handle stream) {
  constexpr const char* function = "matmul";
  const Array a(a_in, "a", Array::read), b(b_in, "b", Array::read);
  require_dims(function, "a", a, 1);
  require_dims(function, "b", b, 1);
  const Options options = parse_options(function, nb::none(), precision, device, stream);
  if (a.ndim() == 1 && b.ndim() == 1) return dot(function, a, b, out, options);
  if (b.ndim() == 1) return gemv(function, a, b, nb::none(), 1.0f, 0.0f, false, out, options);
  if (a.ndim() == 1) return gemv(function, b, a, nb::none(), 1.0f, 0.0f, true, out, options);
  return gemm(function, a, b, nb::none(), 1.0f, 0.0f, false, false, out, options);
}

nb::object sgemm(nb::handle a_in, nb::handle b_in, nb::handle c, float alpha, float beta, bool trans_a, bool trans_b,
                 nb::handle out, nb::handle kernel, const char* precision, const char* device, nb::handle stream) {
  constexpr const char* function = "sgemm";
  const Array a(a_in, "a", Array::read), b(b_in, "b", Array::read);
  require_dims(function, "a", a, 2);
  require_dims(function, "b", b, 2);
  return gemm(function, a, b, c, alpha, beta, trans_a, trans_b, out,
              parse_options(function, kernel, precision, device, stream));
}

nb::object sgemv(nb::handle a_in, nb::handle x_in, nb::handle y, float alpha, float beta, bool trans, nb::handle out,
                 nb::handle kernel, const char* device, nb::handle stream) {
  constexpr const char* function = "sgemv";
  const Array a(a_in, "a", Array::read), x(x_in, "x", Array::read);
  require_dims(function, "a", a, 2);
  require_dims(function, "x", x, 1);
  return gemv(function, a, x, y, alpha, beta, trans, out, parse_options(function, kernel, "accurate", device, stream));
}

nb::object transpose(nb::handle a_in, nb::handle out, nb::handle kernel, const char* device, nb::handle stream) {
  constexpr const char* function = "transpose";
  const Array a(a_in, "a", Array::read);
  require_dims(function, "a", a, 2);
  const Options options = parse_options(function, kernel, "accurate", device, stream);
  const MatrixDims da(a, false);
  Batch batch({{&a, a.ndim() - 2}}, function);
  Shape shape = batch.sizes();
  shape.push_back(da.cols);
  shape.push_back(da.rows);
  Target target(function, out, shape, {&a});
  const Array& result = target.array();
  const MatrixDims db(result, false);
  batch.add(result);
  batch.for_each_run([&](int64_t count, const int64_t* offsets, const int64_t* strides) {
    call(TransposeArgs{.m = da.rows,
                       .n = da.cols,
                       .batch = count,
                       .a = {a.data() + offsets[0], da.rs, da.cs, strides[0]},
                       .b = {result.data() + offsets[1], db.rs, db.cs, strides[1]}},
         options);
  });
  return target.finish();
}

}  // namespace fl::py
