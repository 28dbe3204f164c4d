"""Operands of float16 and bfloat16 in device memory, with `dtype=np.float32`: the bits of converting them first."""

from __future__ import annotations

import importlib
from functools import partial
from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_same_bits, assert_within, oracle, without_payload
from support.device import assign
from support.device_libraries import Announced, Placed
from support.operands import HALVES, ORDERS, as_float32, dtype_of, halves
from support.rows import rows, taken
from support.shapes import SGEMV, SGEMV_FEW

pytestmark = pytest.mark.gpu

F32 = np.float32
LAYOUTS = {**ORDERS, "padded": lambda x: np.pad(x, ((0, 0), (0, 8)))[:, :-8]}


# ---------------------------------------------------------------- products with a vector, by kernels that read 16 bits
def by_name(row, a, x, **options):
    """None where the row does not take such a matrix."""
    return taken(row, lambda: fl.sgemv(Placed(a), Placed(x), kernel=row.name, **options).numpy())


@pytest.mark.parametrize("row", rows("sgemv", "cuda"))
@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("shapes", [SGEMV_FEW, SGEMV], ids=["few", "all"])
def test_each_row_has_the_bits_of_the_float32_matrix(row, name, shapes):
    for (m, n), trans in product(shapes, (False, True)):
        a, x = halves(name, m, n), np.random.default_rng(n).standard_normal(n, F32)
        for order in ("C", "F") if m * n < 20_000 else ("C",):
            stored = np.asarray(a.T if trans else a, order=order)
            got = by_name(row, stored, x, trans=trans, dtype=F32)
            want = by_name(row, as_float32(stored), x, trans=trans)
            assert (got is None) == (want is None)
            if got is not None:
                assert_same_bits(got, want, f"{(m, n)} trans {trans} {order}")
                assert_within(got, *(y[..., 0] for y in oracle(as_float32(a), x[:, None])), f"{(m, n)} trans {trans}")


LARGE = (
    *((3000, 1500), (1500, 3000), (40, 70_000), (70_000, 40), (1601, 2047), (2047, 1601), (300, 20_001)),
    (4096, 4096),
)


@pytest.mark.parametrize("shape", LARGE, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("name", HALVES)
def test_large_matrices_times_vectors(name, shape):
    a = halves(name, *shape)
    for order, trans, step, of_x in product("CF", (False, True), (1, 2), ("f4", name)):
        stored = np.asarray(a, order=order)
        x = halves(of_x, step * shape[not trans], seed=1)[::step]
        y = np.random.default_rng(2).standard_normal(shape[trans], F32)
        options = {"trans": trans, "alpha": 0.5, "beta": 2.0, "device": "cuda"}
        got = fl.sgemv(Placed(stored), Placed(x), Placed(y), dtype=F32, **options)
        want = fl.sgemv(Placed(as_float32(stored)), Placed(as_float32(x)), Placed(y), **options)
        assert_same_bits(got.numpy(), want.numpy(), f"{order} trans {trans} step {step} x {of_x}")


@pytest.mark.parametrize("name", HALVES)
def test_matrices_that_begin_anywhere_times_vectors(name):
    """The float32 matrix begins at the start of an allocation, as one that has just been converted does."""
    for shape, order in product(((300, 2047), (200, 4096), (4096, 200)), LAYOUTS):
        a, x = LAYOUTS[order](halves(name, *shape)), Placed(np.random.default_rng(1).standard_normal(shape[1], F32))
        want = fl.sgemv(Placed(as_float32(a)), x).numpy()
        for shift in (0, 1, 4, 8, 15):
            got = fl.sgemv(Placed(a, shift), x, dtype=F32)
            assert_same_bits(got.numpy(), want, f"{shape} {shift} {order}")


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_no_large_matrix_is_copied_for_a_product_with_a_vector(name, order, limit):
    n = 2048
    a, x = Placed(np.ones((n, n), dtype_of(name), order=order)), Placed(np.ones(n, F32))
    fl.sgemv(a, x, dtype=F32)
    fl.cuda.trim()
    limit(fl.cuda.memory_info()["used"] + n * n)
    for trans in (False, True):
        assert (fl.sgemv(a, x, trans=trans, dtype=F32).numpy() == n).all()
    with pytest.raises(MemoryError):
        fl.matmul(a, a, precision="strict", dtype=F32)


def every_number(name):
    return np.arange(2**16, dtype=np.uint16).reshape(256, 256).view(dtype_of(name))


@pytest.mark.parametrize("name", HALVES)
def test_every_number_is_read(name):
    """Products with columns of the identity: NaN and infinity make NaN of zeros, so each stands alone with them."""
    a = every_number(name)
    got = fl.transpose(Placed(a), dtype=F32).numpy().T
    assert_same_bits(without_payload(got), without_payload(as_float32(a)))
    one = Placed(np.ones(1, F32))
    for stored, trans in ((a.reshape(-1, 1), False), (a.reshape(1, -1), True)):
        got = fl.sgemv(Placed(stored), one, trans=trans, dtype=F32).numpy()
        assert_same_bits(without_payload(got), without_payload(as_float32(a).ravel()) + F32(0))  # no -0
    finite = np.where(np.isfinite(as_float32(a)), as_float32(a), 0).astype(a.dtype)
    finite = np.tile(finite, (8, 8))  # as large as what is read in 16 bits
    for column, trans in product((0, 77, 2047), (False, True)):
        x = np.zeros(2048, F32)
        x[column] = 1
        got = fl.sgemv(Placed(finite), Placed(x), trans=trans, dtype=F32).numpy()
        assert_same_bits(got, as_float32(finite[column] if trans else finite[:, column]) + F32(0))


# ---------------------------------------------------------------- everything else
def calls(a, b, options):
    square = a[: min(a.shape), : min(a.shape)]
    return {
        "matmul": lambda put: fl.matmul(put(a), put(b), **options),
        "A alone": lambda put: fl.matmul(put(a), Placed(as_float32(b)), **options),
        "B alone": lambda put: fl.matmul(Placed(as_float32(a)), put(b), **options),
        "sgemm": lambda put: fl.sgemm(
            put(b), put(a), put(b[:1, :1].reshape(1)), alpha=0.5, beta=2.0, trans_a=True, trans_b=True, **options
        ),
        "vector and matrix": lambda put: fl.matmul(put(a[0]), put(b), **options),
        "matrix and vector": lambda put: fl.matmul(put(a), put(b[:, 0]), **options),
        "vectors": lambda put: fl.matmul(put(a[0]), put(b[:, 0]), **options),
        "symmetric": lambda put: fl.matmul(put(square), put(square.T), **options),
        "triangle": lambda put: fl.ssyrk(put(a), uplo="L", **options),
        "batches": lambda put: fl.matmul(put(np.stack([a, a[::-1]])), put(b), **options),
        "no terms": lambda put: fl.sgemm(put(a), put(b), Placed(np.ones(1, F32)), alpha=0.0, beta=-1.0, **options),
    }


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 7), (70, 95, 300), (257, 130, 33)], ids=str)
@pytest.mark.parametrize("types", [("f2", "bfloat16"), ("bfloat16", "f2")], ids=str)
def test_products_have_the_bits_of_converted_operands(types, shape):
    m, n, k = shape
    for a_order, b_order in product(LAYOUTS, repeat=2):
        if "C" not in (a_order, b_order):
            continue
        a, b = LAYOUTS[a_order](halves(types[0], m, k)), LAYOUTS[b_order](halves(types[1], k, n, seed=1))
        for precision in ("strict", "reproducible"):
            for name, call in calls(a, b, {"precision": precision, "dtype": F32}).items():
                got, want = call(lambda x: Placed(x, 1)), call(lambda x: Placed(as_float32(x)))
                assert_same_bits(got.numpy(), want.numpy(), f"{name} {a_order} {b_order} {precision}")
        got = fl.matmul(Placed(a), Placed(b), dtype=F32)
        assert_within(got.numpy(), *oracle(as_float32(a), as_float32(b)), f"accurate {a_order} {b_order}")


@pytest.mark.parametrize("name", HALVES)
def test_plans_read_them_at_each_execution(name):
    for m, n in ((20, 30), (1, 2100), (2100, 1)):
        a, b = halves(name, m, 1100), halves(name, 1100, n, seed=1)
        want = fl.matmul(Placed(as_float32(a)), Placed(as_float32(b)), precision="strict").numpy()
        with fl.Matmul(Placed(a), Placed(b), precision="strict", dtype=F32) as plan:
            for _ in range(6):
                assert_same_bits(plan.execute().numpy(), want)
            for shift in (1, 4, 0):
                plan.reset_operands(Placed(a, shift), Placed(b[:, ::-1][:, ::-1], shift))
                assert_same_bits(plan.execute().numpy(), want, f"shift {shift}")


def stacks(name):
    """In each order, of odd sizes: the matrices of a float32 one begin on few boundaries."""
    a, b = halves(name, 2, 3, 33, 75), halves(name, 2, 3, 75, 29, seed=1)
    return {
        "C": (a, b),
        "F": (np.asfortranarray(a), b),
        "one by one": (a.swapaxes(0, 1).copy().swapaxes(0, 1), b),
        "between rows": (a, b.transpose(1, 2, 0, 3).copy().transpose(2, 0, 1, 3)),
        "one for all": (a, b[:1, :1]),
        "backwards": (a[:, ::-1], b),
        "one row": (halves(name, 2, 3, 1, 2475), halves(name, 2, 3, 2475, 8)),
        "one column": (halves(name, 2, 3, 8, 2475), halves(name, 2, 3, 2475, 1)),
    }


def result_in_parts(first, second, *shape):
    """Its two dimensions of problems are not evenly spaced."""
    memory = fl.DeviceArray.from_numpy(np.zeros((first, second + 1, *shape), F32))
    return Announced(memory, shape=(first, second, *shape), strides=memory.numpy().strides), memory


def planned(a, b, out, **options):
    with fl.Matmul(a, b, out=out, **options) as plan:
        for _ in range(3):
            plan.execute()
        plan.reset_operands(b=b)
        return plan.execute()


@pytest.mark.parametrize("name", HALVES)
def test_stacks_have_the_bits_of_converted_ones_in_any_result(name):
    calls = {
        "matmul": fl.matmul,
        "plan": planned,
        "constant operand": partial(planned, constant="b"),
        "list": lambda a, b, out, **options: fl.grouped_matmul([a, a], [b, b], out=[None, out], **options),
        "triangle": lambda a, b, out, **options: fl.ssyrk(a, uplo="L", out=out, **options),
    }
    for (order, (a, b)), precision in product(stacks(name).items(), ("strict", "reproducible")):
        for what, call in calls.items():
            shape = a.shape[-2], a.shape[-2] if what == "triangle" else b.shape[-1]
            assert_same_bits(*of_both(call, a, b, shape, precision=precision), f"{what} {order} {precision}")
    a, b = halves(name, 2, 3, 33, 75), halves(name, 2, 3, 75, seed=1)
    for kernel in (None, "long_rows"):
        assert_same_bits(*of_both(fl.sgemv, a, b, (33,), kernel=kernel), f"sgemv {kernel}")


@pytest.mark.parametrize("name", HALVES)
def test_each_execution_copies_stacks_anew(name):
    a, b = stacks(name)["one by one"]
    stack, (out, memory) = Placed(a), result_in_parts(2, 3, 33, 29)
    with fl.Matmul(stack, Placed(b), out=out, dtype=F32) as plan:
        plan.execute()
        first = memory.numpy()
        negative = Placed(-a).memory.numpy()[None]
        assign(Announced(stack.memory, shape=negative.shape), negative)
        plan.execute()
        assert_same_bits(memory.numpy()[:, :3], -first[:, :3])


def of_both(call, a, b, shape, **options):
    """Results of the operands as they are and converted, in parts."""
    for x, y, dtype in ((a, b, F32), (as_float32(a), as_float32(b), None)):
        out, memory = result_in_parts(2, 3, *shape)
        call(Placed(x), Placed(y), out=out, dtype=dtype, **options)
        yield memory.numpy()


def test_the_interface_tells_of_float16():
    """Of numba and its like; their bfloat16 has no name there."""
    a, b = halves("f2", 40, 30), halves("f2", 30, 50, seed=1)
    place = lambda x: Announced(  # noqa: E731
        fl.DeviceArray.from_numpy(np.ascontiguousarray(x).view(F32)), typestr="<f2", shape=x.shape, strides=None
    )
    got = fl.matmul(place(a), place(b), precision="strict", dtype=F32)
    assert_same_bits(got.numpy(), fl.matmul(Placed(as_float32(a)), Placed(as_float32(b)), precision="strict").numpy())
    with pytest.raises(TypeError, match="must have dtype float32, got '<f2'"):
        fl.matmul(place(a), place(b))
    with pytest.raises(ValueError, match="a is not aligned to 2 bytes; pass a copy"):
        fl.matmul(Announced(Placed(a).memory, typestr="<f2", shape=(3, 4), strides=(9, 2)), place(a), dtype=F32)


@pytest.mark.parametrize(("library", "name"), [("torch", "float16"), ("torch", "bfloat16"), ("cupy", "float16")])
def test_tensors_and_cupy_arrays(library, name):
    lib = pytest.importorskip(library)
    a, x = np.random.default_rng(0).standard_normal((700, 4096), F32), np.ones(4096, F32)
    if library == "torch":
        stored, given = lib.from_numpy(a).cuda().to(getattr(lib, name)), lib.from_numpy(x).cuda()
        convert = lib.Tensor.float
    else:
        stored, given = lib.asarray(a).astype(name), lib.asarray(x)
        convert = lambda x: x.astype(F32)  # noqa: E731
    for part in (stored, stored[3:, 5:], stored[:, ::2]):
        four, of_x = convert(part), given[: part.shape[1]]
        assert (fl.sgemv(part, of_x, dtype=F32) == fl.sgemv(four, of_x)).all()
        got, want = (fl.matmul(y, y.T, precision="strict", dtype=dtype) for y, dtype in ((part, F32), (four, None)))
        assert type(got) is type(stored)
        assert (got == want).all()
    with pytest.raises(TypeError, match="must have dtype float32"):
        fl.sgemv(stored, given)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_weights_of_torch(name):
    torch = pytest.importorskip("torch")
    functions = importlib.import_module("fastlinalg.torch")
    x, w, bias = (torch.randn(*shape, device="cuda") for shape in ((30, 2048), (3000, 2048), (3000,)))
    w = w.to(getattr(torch, name))
    results = []
    for weight in (w, w.float()):
        rows_, weight = x[:9].clone().requires_grad_(), weight.clone().requires_grad_()
        y = functions.linear(rows_, weight, bias, precision="strict", dtype=torch.float32)
        (y * y).sum().backward()
        assert weight.grad.dtype == weight.dtype and y.dtype == torch.float32
        results.append((y.detach(), rows_.grad, weight.grad.to(w.dtype)))
    for got, want in zip(*results, strict=True):
        assert torch.equal(got, want)
    one = functions.matmul(x[0], w.T, dtype=torch.float32)
    assert torch.equal(one, functions.matmul(x[0], w.T.float()))
