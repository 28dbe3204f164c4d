"""`dtype=np.float32`: operands of other real types are computed as if `astype` had converted them."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_same_bits
from support.operands import CONVERTED, HALVES, ORDERS, as_float32, dtype_of, halves, numbers

VIEWS = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "every other row and column": lambda x: x[..., ::2, ::2],
    "backwards": lambda x: x[..., ::-1, ::-1],
    "read-only": lambda x: np.broadcast_to(x, x.shape),
    "broadcast rows": lambda x: np.broadcast_to(x[..., :1, :], x.shape),
    "one row": lambda x: x[..., :1, :],
    "one column": lambda x: x[..., :, :1],
    "no rows": lambda x: x[..., :0, :],
    "no columns": lambda x: x[..., :, :0],
    "odd addresses": lambda x: _at_odd_address(x),
    "odd steps": lambda x: _field(x),
}


def _at_odd_address(x):
    copy = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy


def _field(x):
    records = np.empty(x.shape, [("number", x.dtype), ("flag", np.uint8)])
    records["number"] = x
    return records["number"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", CONVERTED)
def test_every_number_of_every_view_is_converted_as_astype_does(name, view):
    x = VIEWS[view](numbers(name, 3, 70, 90))
    got = fl.transpose(x, dtype=np.float32, device="cpu")
    assert_same_bits(got, np.swapaxes(x, -1, -2).astype(np.float32, order="C"))


def test_all_halves():
    bits = np.arange(2**16, dtype=np.uint16).reshape(256, 256)
    for name in ("f2", "bfloat16"):
        x = bits.view(dtype_of(name))
        got, want = fl.transpose(x, dtype=np.float32, device="cpu").T, x.astype(np.float32)
        nan = np.isnan(want)
        assert (np.isnan(got) == nan).all()
        assert_same_bits(np.where(nan, 0, got), np.where(nan, 0, want))


def test_what_is_beyond_float32_is_infinite():
    x = np.array([[1e300, -1e300, 3.4028235677973366e38, 1e-50, np.nan]])
    with np.errstate(over="ignore"):
        assert np.array_equal(fl.transpose(x, dtype=np.float32).T, x.astype(np.float32), equal_nan=True)


OVERFLOWS = {
    "a product": lambda x: fl.matmul(x, x, dtype=np.float32),
    "a product with a vector": lambda x: fl.matmul(x, x[0], dtype=np.float32),
    "a dot product": lambda x: fl.matmul(x[-1], x[-1], dtype=np.float32),
    "a transpose": lambda x: fl.transpose(x, dtype=np.float32),
    "other strides": lambda x: fl.transpose(x[::-3, ::-2], dtype=np.float32),
    "an addend": lambda x: fl.sgemm(np.eye(len(x)), np.eye(len(x)), x, beta=1.0, dtype=np.float32),
    "odd addresses": lambda x: fl.transpose(_at_odd_address(x), dtype=np.float32),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_an_overflow_is_reported_as_by_astype(name):
    """As `np.errstate` says; not where a number has been infinite before, nor for long."""
    x = np.full((600, 600), 3.4e38)  # by several threads
    x[:, 0], x[0] = np.inf, -np.inf
    call = OVERFLOWS[name]
    with warnings.catch_warnings(), np.errstate(all="raise"), fl.num_threads(3):
        warnings.simplefilter("error")
        call(x)
        x[-1, -1] = 1e300
        with pytest.raises(FloatingPointError, match="overflow encountered in cast"):
            call(x)
        with np.errstate(over="warn"), pytest.raises(RuntimeWarning, match="overflow encountered in cast"):
            call(x)
        with np.errstate(over="ignore"):
            call(x)
        x[-1, -1] = 1
        call(x)


@pytest.mark.parametrize("consent", [np.float32, np.dtype(np.float32), "float32", "f4"], ids=repr)
def test_products_are_those_of_converted_operands(consent):
    a, b, c = numbers("f8", 5, 40, 30), numbers("i4", 30, 20), numbers("f2", 20)
    a4, b4, c4 = (x.astype(np.float32) for x in (a, b, c))
    x = numbers("u1", 30)
    x4 = x.astype(np.float32)
    same = {
        "matmul": (fl.matmul(a, b, dtype=consent), fl.matmul(a4, b4)),
        "one of them": (fl.matmul(a4, b, dtype=consent), fl.matmul(a4, b4)),
        "none of them": (fl.matmul(a4, b4, dtype=consent), fl.matmul(a4, b4)),
        "matrix and vector": (fl.matmul(a, x, dtype=consent), fl.matmul(a4, x4)),
        "vector and matrix": (fl.matmul(x, b, dtype=consent), fl.matmul(x4, b4)),
        "vectors": (fl.matmul(x, x, dtype=consent), fl.matmul(x4, x4)),
        "sgemm": (
            fl.sgemm(b, a, c[:, None], alpha=0.5, beta=2.0, trans_a=True, trans_b=True, dtype=consent),
            fl.sgemm(b4, a4, c4[:, None], alpha=0.5, beta=2.0, trans_a=True, trans_b=True),
        ),
        "sgemv": (
            fl.sgemv(b, x, c, alpha=0.5, beta=2.0, trans=True, dtype=consent),
            fl.sgemv(b4, x4, c4, alpha=0.5, beta=2.0, trans=True),
        ),
    }
    for name, (got, want) in same.items():
        assert got.dtype == np.float32, name
        assert_same_bits(np.asarray(got), np.asarray(want), name)


def _products(a, b, options, to=lambda x: x):
    """Of what each of the CPU's kernels for `a` and `b` gets to see; of to() of the operands."""
    x, y, rows, columns, both = to(b[:, 0]), to(a[0]), to(a[:3]), to(b[:, :3]), to(np.stack([a, a]))
    square, interleaved = to(a[:300]), to(np.asfortranarray(np.stack([a, a])))
    a, b = to(a), to(b)
    return {
        "matmul": fl.matmul(a, b, **options),
        "sgemm": fl.sgemm(b, a, np.ones(1, np.float32), alpha=0.5, beta=2.0, trans_a=True, trans_b=True, **options),
        "rows": fl.matmul(rows, b, **options),
        "columns": fl.matmul(a, columns, **options),
        "matrix and vector": fl.matmul(a, x, **options),
        "vector and matrix": fl.matmul(y, b, **options),
        "vectors": fl.matmul(y, x, **options),
        "symmetric": fl.matmul(square, square.T, **options),
        "batches": fl.matmul(both, b, **options),
        "a stack of matrices that interleave": fl.matmul(interleaved, x, **options),
        "a plan of one": fl.Matmul(interleaved, x, **options).execute(),
        "no terms": fl.sgemm(a, b, np.zeros(1, np.float32), alpha=0.0, beta=-1.0, **options),
    }


SHAPES = ((1, 1, 1), (5, 3, 7), (15, 33, 64), (70, 95, 1100), (3, 2, 5000), (2100, 9, 20))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("types", [("f2", "f4"), ("f4", "f2"), ("bfloat16", "f4"), ("f2", "bfloat16")], ids=str)
def test_operands_in_16_bits_give_the_bits_of_converted_ones(types, shape):
    m, n, k = shape
    for a_order, b_order in itertools.product(ORDERS, repeat=2):
        if "C" not in (a_order, b_order):
            continue
        a, b = ORDERS[a_order](halves(types[0], m, k)), ORDERS[b_order](halves(types[1], k, n, seed=1))
        for precision in ("strict", "reproducible"):
            options = {"device": "cpu", "precision": precision}
            with fl.num_threads(3):
                got = _products(a, b, {**options, "dtype": np.float32})
                want = _products(a, b, options, to=as_float32)
            for name in got:
                assert_same_bits(np.asarray(got[name]), np.asarray(want[name]), (name, a_order, b_order, precision))


@pytest.mark.parametrize("name", HALVES)
def test_kernels_read_16_bits_or_get_a_copy(name):
    a, b, x = halves(name, 40, 300), halves(name, 300, 50, seed=1), halves(name, 300, seed=2)
    for row in fl.kernels("sgemm"):
        if row.available and row.device == "cpu":
            got = fl.sgemm(a, b, kernel=row.name, dtype=np.float32)
            assert_same_bits(got, fl.sgemm(as_float32(a), as_float32(b), kernel=row.name), row.name)
    for row in fl.kernels("sgemv"):
        if row.available and row.device == "cpu":
            got = fl.sgemv(a, x, kernel=row.name, dtype=np.float32)
            assert_same_bits(got, fl.sgemv(as_float32(a), as_float32(x), kernel=row.name), row.name)


@pytest.mark.parametrize("name", HALVES)
def test_triangles_have_the_bits_of_converted_operands(name):
    for shape, trans in (((65, 129), True), ((129, 65), False)):
        a = halves(name, *shape)
        got = fl.ssyrk(a, trans=trans, uplo="L", dtype=np.float32, device="cpu")
        assert_same_bits(got, fl.ssyrk(as_float32(a), trans=trans, uplo="L", device="cpu"))


@pytest.mark.parametrize("name", HALVES)
def test_no_operand_in_16_bits_is_copied_whole(name, python):
    """What the process has ever had in memory grows by less than such a copy."""
    program = f"""
import resource
import numpy as np, fastlinalg as fl
if {name!r} == "bfloat16":
    import ml_dtypes
n = 4096
b = np.zeros((n, n), ml_dtypes.bfloat16 if {name!r} == "bfloat16" else np.float16)
b[...] = 1
a, x = np.ones((64, n), np.float32), np.ones(n, np.float32)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
with fl.num_threads(1):
    fl.matmul(a, b, dtype=np.float32, device="cpu"), fl.sgemv(b, x, dtype=np.float32, device="cpu")
assert peak() - before < 4 * n * n / 1024 / 2, peak() - before
"""
    dtype_of(name)
    python(program)


def test_out_may_lie_in_the_memory_of_an_operand():
    """A float64 element reaches twice as far as a float32 one."""
    memory = numbers("f8", 64, 64)
    want = fl.matmul(memory.astype(np.float32), memory.astype(np.float32))
    out = memory.view(np.float32).reshape(-1)[-64 * 64 :].reshape(64, 64)
    assert_same_bits(fl.matmul(memory, memory, out=out, dtype=np.float32), want)
    square = numbers("f8", 32, 32)
    want = square.T.astype(np.float32, order="C")
    out = square.view(np.float32).reshape(-1)[: 32 * 32].reshape(32, 32)
    assert_same_bits(fl.transpose(square, out=out, dtype=np.float32), want)


class Foreign:
    def __init__(self, array):
        self.array = array
        self.dtype = array.dtype

    def astype(self, name):
        return Foreign(self.array.astype(name))

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_halves_of_other_libraries_are_read_as_they_lie():
    class NeverConverted(Foreign):
        def astype(self, name):
            raise AssertionError("it has been converted")

    a, b = halves("f2", 40, 30), halves("f2", 30, 50, seed=1)
    got = fl.matmul(NeverConverted(a[:, ::-1]), NeverConverted(b), dtype=np.float32, device="cpu")
    assert_same_bits(np.asarray(got), fl.matmul(as_float32(a[:, ::-1]), as_float32(b), device="cpu"))
    got = fl.transpose(NeverConverted(a), dtype=np.float32, device="cpu")
    assert_same_bits(np.asarray(got), as_float32(a).T.copy())
    with pytest.raises(TypeError, match="must have dtype float32, got float16; nothing is cast silently"):
        fl.matmul(NeverConverted(a), NeverConverted(b))


@pytest.mark.parametrize("name", HALVES)
def test_plans_read_halves_at_each_execution(name):
    for m, n in ((20, 30), (1, 30), (20, 1)):
        a, b, x = halves(name, m, 300), halves(name, 300, n, seed=1), halves(name, 300, seed=2)
        with fl.Matmul(a, b, dtype=np.float32, device="cpu") as product:
            for _ in range(2):
                assert_same_bits(product.execute(), fl.matmul(as_float32(a), as_float32(b), device="cpu"))
                a *= dtype_of(name).type(0.5)
            product.reset_operands(b=as_float32(b))
            assert_same_bits(product.execute(), fl.matmul(as_float32(a), as_float32(b), device="cpu"))
        with fl.Matmul(a, x, dtype=np.float32, device="cpu") as product:
            assert_same_bits(product.execute(), fl.matmul(as_float32(a), as_float32(x), device="cpu"))
    for other in (a.astype(np.float64), _at_odd_address(a), a.astype(">f2")):
        with pytest.raises(TypeError, match="a must be an aligned array of float32, float16 or bfloat16"):
            fl.Matmul(other, b, dtype=np.float32)


def test_other_libraries_convert_their_arrays_themselves():
    a, b = numbers("f8", 9, 8), numbers("i8", 8, 7)
    got = fl.matmul(Foreign(a), Foreign(b), dtype=np.float32)
    assert_same_bits(np.asarray(got), fl.matmul(a.astype(np.float32), b.astype(np.float32)))
    with pytest.raises(TypeError, match="nothing is cast silently"):
        fl.matmul(Foreign(a), Foreign(b))

    class NeverDone(Foreign):
        def astype(self, name):
            return self

    with pytest.raises(TypeError, match="must have dtype float32, got float64"):
        fl.matmul(NeverDone(a), NeverDone(b), dtype=np.float32)


@pytest.mark.parametrize("dtype", [np.float64, "f8", int, "nonsense", 3.0, np.dtype("i4")], ids=repr)
def test_no_other_dtype_is_computed_in(dtype):
    with pytest.raises(TypeError, match=r"matmul: dtype must be None or np\.float32, in which everything is computed"):
        fl.matmul(numbers("f4", 2, 2), numbers("f4", 2, 2), dtype=dtype)


STRINGS = [np.dtypes.StringDType()] if hasattr(np.dtypes, "StringDType") else []


@pytest.mark.parametrize("dtype", ["c16", "O", "S4", "U4", "M8[s]", "V4", *STRINGS], ids=str)
def test_consent_is_to_real_numbers(dtype):
    with pytest.raises(TypeError, match="a must have dtype float32, got"):
        fl.matmul(np.zeros((2, 2), dtype), numbers("f8", 2, 2), dtype=np.float32)


def test_consent_is_to_operands_alone():
    a = numbers("f8", 2, 2)
    with pytest.raises(TypeError, match="out must have dtype float32, got float64; allocate it as float32"):
        fl.matmul(a, a, out=np.empty((2, 2)), dtype=np.float32)
    with pytest.raises(TypeError, match="got list"):
        fl.matmul([[1.0]], a, dtype=np.float32)


def test_without_consent_the_error_offers_it():
    a = numbers("f8", 2, 2)
    with pytest.raises(TypeError, match=r"use a\.astype\(np\.float32\), or dtype=np\.float32 to have it converted"):
        fl.matmul(a, a)
    with pytest.raises(TypeError, match=r"or dtype=np\.float32 to have it converted"):
        fl.Matmul(a.astype(np.float16), a.astype(np.float16))
