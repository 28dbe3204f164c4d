"""The public functions: NumPy's shape rules, out=, overlapping operands, and results that stay as they are promised."""

from __future__ import annotations

import contextlib
import sys

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_product, assert_same_bits
from support.layouts import result
from support.operands import normal

F32 = np.float32


# ---------------------------------------------------------------- NumPy arrays, however they describe themselves
ARRAYS = {
    "plain": lambda x: x,
    "another dtype object": lambda x: x.astype(np.dtype(F32, metadata={"unit": "m"})),
    "subclass": lambda x: x.view(type("Own", (np.ndarray,), {})),
    "matrix": lambda x: x.view(np.matrix),
    "frombuffer": lambda x: np.frombuffer(bytearray(x.tobytes()), F32).reshape(x.shape),
    "unaligned": lambda x: np.frombuffer(b"." + x.tobytes(), np.uint8)[1:].view(F32).reshape(x.shape),
    "read-only": lambda x: np.frombuffer(x.tobytes(), F32).reshape(x.shape),
    "field": lambda x: np.stack([x, -x], -1).view([("x", F32), ("y", F32)])["x"][..., 0],
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_are_read_however_they_describe_themselves(kind, rng):
    a, b, out = normal(rng, 7, 5), normal(rng, 5, 3), normal(rng, 7, 3)
    want, got = fl.matmul(a, b), fl.matmul(ARRAYS[kind](a), ARRAYS[kind](b))
    assert type(got) is np.ndarray
    assert_same_bits(got, want, kind)
    described = ARRAYS[kind](out)
    if not described.flags.writeable:
        with pytest.raises(ValueError, match="out is read-only"):
            fl.matmul(a, b, out=described)
        assert_same_bits(described, out, kind)
        return
    assert fl.matmul(a, b, out=described) is described
    assert_same_bits(np.array(described), want, kind)


def test_a_view_that_numpy_warns_of_writing_to_is_read_only(rng):
    out = np.broadcast_arrays(np.zeros((7, 3), F32), np.zeros(3, F32))[1]
    with pytest.raises(ValueError, match="out is read-only"):
        fl.matmul(normal(rng, 7, 5), normal(rng, 5, 3), out=out)


# ---------------------------------------------------------------- shapes
MATMUL_SHAPES = (
    ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)), ((1, 2, 3), (5, 3, 4)),
    ((7, 1, 1, 2, 3), (2, 1, 3, 1)),
    ((1,), (1,)), ((0,), (0,)), ((0,), (0, 4)), ((2, 0), (0,)), ((0, 3), (3,)), ((2, 0), (0, 4)), ((0, 3), (3, 4)),
    ((2, 3), (3, 0)),
    ((0, 0), (0, 0)), ((0, 2, 3), (3, 4)), ((0, 2, 3), (0, 3, 4)), ((0, 2, 3), (1, 3, 4)), ((4, 2, 0), (0, 3)),
    ((1, 1), (1, 1)),
)  # fmt: skip


@pytest.mark.parametrize("shapes", MATMUL_SHAPES, ids=lambda s: f"{s[0]}@{s[1]}".replace(" ", ""))
def test_matmul_has_numpys_shapes(shapes, rng):
    a, b = normal(rng, *shapes[0]), normal(rng, *shapes[1])
    want = np.matmul(a, b)
    got = fl.matmul(a, b)
    assert type(got) is type(want) and got.dtype == F32 and got.shape == want.shape
    left = a[None] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    full = np.asarray(got)
    full = full[..., None] if b.ndim == 1 else full
    full = np.expand_dims(full, -2) if a.ndim == 1 else full
    assert_product(full, left, right)
    out = np.full(want.shape, np.nan, F32)
    assert fl.matmul(a, b, out) is out
    assert_same_bits(out, np.asarray(got))


def test_matmul_result_is_a_fresh_c_ordered_array(rng):
    a, b = normal(rng, 4, 5), normal(rng, 5, 6)
    got = fl.matmul(np.asfortranarray(a), b.T.copy().T)
    assert type(got) is np.ndarray and got.flags.c_contiguous and got.flags.owndata and got.flags.writeable


def test_a_dimension_of_size_one_may_have_any_stride(rng):
    row, column = normal(rng, 1, 6), normal(rng, 6, 1)
    odd_row = np.lib.stride_tricks.as_strided(row, (1, 6), (2**62, 4))
    odd_column = np.lib.stride_tricks.as_strided(column, (6, 1), (4, -(2**62)))
    assert_product(fl.matmul(odd_row, odd_column), row, column)
    assert_product(fl.matmul(odd_column, odd_row), column, row)
    assert_same_bits(fl.transpose(odd_row), row.T)
    assert_product(fl.sgemv(odd_row, column[:, 0])[:, None], row, column)


# ---------------------------------------------------------------- out
def test_out_is_returned_with_its_strides(rng):
    a, b = normal(rng, 6, 5), normal(rng, 5, 9)
    for layout in ("C", "F", "strided_both", "reversed_both", "unaligned", "unaligned_rows"):
        out = result((6, 9), layout)
        strides = out.array.strides
        for call in (fl.matmul, fl.sgemm):
            assert call(a, b, out=out.array) is out.array
            assert_product(out.array, a, b, context=layout)
        assert out.array.strides == strides
        out.assert_intact(layout)


OVERLAPS = {
    "out is a": lambda x: (x, x[:, ::-1], x),
    "out is b": lambda x: (x[::-1], x, x),
    "out is both": lambda x: (x, x, x),
    "out is the transpose of a": lambda x: (x, x[::2, ::2].repeat(2, 0).repeat(2, 1), x.T),
    "out overlaps the rows of a": lambda x: (x[:8], x[:, :].copy(), x[4:12]),
    "out overlaps the rows of b": lambda x: (x[:, :8].copy(), x[:8], x),
    "out interleaves with a": lambda x: (x[::2], x.copy(), x[1::2]),
    "out reverses a": lambda x: (x, x.copy(), x[::-1]),
    "out overlaps both": lambda x: (x[:8, :8], x[4:12, 4:12], x[2:10, 2:10]),
}


@pytest.mark.parametrize("name", OVERLAPS)
@pytest.mark.parametrize("beta", [None, 0.0, 0.5])
def test_out_may_overlap_the_operands(name, beta, rng):
    """Of matmul, and of sgemm with an addend and without."""
    a, b, out = OVERLAPS[name](normal(rng, 16, 16))
    a_before, b_before, c_before = a.copy(), b.copy(), out.copy()
    got = fl.matmul(a, b, out) if beta is None else fl.sgemm(a, b, out if beta else None, beta=beta, out=out)
    assert got is out
    assert_product(out, a_before, b_before, c_before, beta=beta or 0.0, context=name)


def test_c_may_overlap_out(rng):
    a, b, x = normal(rng, 8, 5), normal(rng, 5, 16), normal(rng, 16, 16)
    for c, out in ((x[:8], x[:8]), (x[:8], x[4:12]), (x[4:12], x[:8]), (x[:8], x[7::-1]), (x[:8, ::-1], x[:8])):
        before = c.copy()
        assert fl.sgemm(a, b, c, beta=2.0, out=out) is out
        assert_product(out, a, b, before, beta=2.0)


def test_vectors_have_strides_of_their_own(rng):
    a, b = normal(rng, 900), normal(rng, 300)
    for x in (a[::3], a[::-3], a[:300], np.broadcast_to(a[:1], 300)):
        for y in (b, b[::-1]):
            for left, right in ((x, y), (y, x)):
                assert_product(np.reshape(fl.matmul(left, right), (1, 1)), left[None], right[:, None])


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1), (1, 4), (3, 4), (2, 1, 1), (2, 3, 4)], ids=str)
def test_c_is_broadcast(shape, rng):
    a, b = normal(rng, 2, 3, 5), normal(rng, 5, 4)
    c = np.asarray(normal(rng, *shape, 1))[..., 0]
    want = 2 * (a.astype(np.float64) @ b) + 3 * c.astype(np.float64)
    assert np.allclose(fl.sgemm(a, b, c, alpha=2, beta=3), want, atol=1e-5)
    out = np.full((2, 4, 3), np.nan, F32).swapaxes(1, 2)
    assert np.allclose(fl.sgemm(a, b, c, alpha=2, beta=3, out=out), want, atol=1e-5)


def test_c_may_be_a_row_of_out(rng):
    a, b, out = normal(rng, 3, 5), normal(rng, 5, 4), normal(rng, 3, 4)
    want = a @ b + out[1]
    assert np.allclose(fl.sgemm(a, b, out[1], beta=1, out=out), want, atol=1e-5)


def test_sgemv_and_transpose_out_may_overlap(rng):
    a = normal(rng, 12, 12)
    for x, out in ((a[0], a[0]), (a[:, 3], a[5]), (a[2], a[:, 7]), (a[3, ::-1], a[3])):
        a_before, x_before = a.copy(), x.copy()
        assert fl.sgemv(a, x, out=out) is out
        assert_product(out[:, None], a_before, x_before[:, None])
        y_before, a_before = out.copy(), a.copy()
        fl.sgemv(a, a[6].copy(), out, beta=-0.5, trans=True, out=out)
        assert_product(out[:, None], a_before.T, a_before[6][:, None], y_before[:, None], beta=-0.5)
    many, doubles = normal(rng, 60), rng.standard_normal(60)
    vectors = (many[24:36], many[::5]), (many[::5], many[24:36]), (many[:48:4], many[10:34:2])
    for y, out in (*vectors, (doubles[:12], doubles.view(F32)[2:50:4])):
        y_before = y.astype(F32)
        fl.sgemv(a, a[6], y, beta=-0.5, out=out, dtype=F32)
        assert_product(out[:, None], a, a[6][:, None], y_before[:, None], beta=-0.5)
    for source, target in ((a, a), (a, a.T), (a, a[::-1]), (a[:8, :4], a[2:6, 1:9])):
        want = source.T.copy()
        assert fl.transpose(source, out=target) is target
        assert_same_bits(target, want)


def test_all_of_c_and_nothing_of_the_product(rng):
    a, c = normal(rng, 6, 6), normal(rng, 6, 6)
    out = np.zeros((6, 6), F32)
    assert (fl.sgemm(a, a, c, alpha=0.0, beta=1.0, out=out) == c).all()


def test_batches_of_no_even_step(rng):
    """Three of their dimensions are one run each in turn, of the operands or of the result."""
    a, b = normal(rng, 4, 6, 4, 3, 5)[::2, ::2, ::2], normal(rng, 2, 3, 2, 5, 4)
    assert_product(fl.matmul(a, b), a, b)
    out = np.zeros((2, 4, 3, 3, 4), F32)[:, ::-1, 1:][:, :3, :2]
    assert_product(fl.matmul(np.ascontiguousarray(a), b, out=out), a, b)


def test_batched_out_may_overlap(rng):
    stack = normal(rng, 4, 6, 6)
    a, b = stack[:3], stack[1:]
    before = a.copy(), b.copy()
    assert_product(fl.matmul(a, b, out=stack[1:]), *before)


def test_out_of_a_broken_call_is_untouched(rng):
    a, b = normal(rng, 3, 4), normal(rng, 4, 5)
    out = np.full((3, 5), 7, F32)
    broken = (
        lambda: fl.sgemm(a, b[:3], out=out),
        lambda: fl.sgemm(a, b, out=out[:2]),
        lambda: fl.sgemm(a, b, beta=1.0, out=out),
        lambda: fl.sgemm(a, b, np.zeros((3, 4), F32), beta=1.0, out=out),
        lambda: fl.sgemm(a, b, out=out, kernel="no such kernel"),
        lambda: fl.sgemm(a, b, out=out, precision="sloppy"),
        lambda: fl.sgemm(a, b, out=out, device="tpu"),
        lambda: fl.matmul(a, b.astype(np.float64), out=out),
    )
    for call in broken:
        with pytest.raises((ValueError, TypeError)):
            call()
        assert (out == 7).all()


# ---------------------------------------------------------------- kinds of arrays that are taken
def test_read_only_inputs(rng, tmp_path):
    a, b = normal(rng, 5, 4), normal(rng, 4, 3)
    np.save(tmp_path / "a.npy", a)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for x in (a, b):
        x.flags.writeable = False
    assert_product(fl.matmul(a, b), a, b)
    assert_product(fl.matmul(mapped, b), a, b)
    assert_product(fl.sgemm(np.broadcast_to(a, (2, 5, 4)), b), np.broadcast_to(a, (2, 5, 4)), b)
    assert_same_bits(fl.transpose(mapped), a.T)


def test_scalars_of_any_kind(rng):
    a, b, c = normal(rng, 3, 4), normal(rng, 4, 5), normal(rng, 3, 5)
    for alpha, beta in ((2, -1), (F32(2), F32(-1)), (np.float64(2), np.float64(-1)), (np.int64(2), True)):
        assert_product(fl.sgemm(a, b, c, alpha=alpha, beta=beta), a, b, c, float(alpha), float(beta))


def test_a_matrix_times_its_own_transpose(rng):
    for n, k in ((70, 300), (300, 70)):
        a = normal(rng, n, k)
        for x in (a, a.T):
            got = fl.matmul(x, x.T, device="cpu")
            assert (got == fl.matmul(x.copy(), x.T, device="cpu")).all() and (got == got.T).all()
            np.testing.assert_allclose(got, x @ x.T, rtol=0, atol=1e-4 * x.shape[1])
    zeros_and_ones = rng.integers(0, 2, (300, 672)).astype(F32)
    with np.errstate(all="raise"):
        assert (fl.matmul(zeros_and_ones, zeros_and_ones.T) == zeros_and_ones.astype(int) @ zeros_and_ones.T).all()


def test_refcounts_stay(rng):
    a, b, out = normal(rng, 8, 8), normal(rng, 8, 8), np.empty((8, 8), F32)
    x = normal(rng, 8)
    held = (a, b, x, out, None, a.dtype)
    calls = (
        lambda: fl.matmul(a, b), lambda: fl.matmul(a, b, out), lambda: fl.matmul(a, x), lambda: fl.matmul(x, x),
        lambda: fl.sgemm(a, b, out, beta=1.0, out=out), lambda: fl.sgemm(a, a, out=a), lambda: fl.sgemv(a, x, out=x),
        lambda: fl.transpose(a), lambda: fl.transpose(a, out=a), lambda: fl.matmul(a.T, b[::-1]),
        lambda: fl.matmul(a, b[:3]), lambda: fl.matmul(a, b, out[:2]), lambda: fl.matmul(a, [1]),
        lambda: fl.matmul(a, None),
        lambda: fl.matmul(a.astype(np.float64), b), lambda: fl.sgemm(a, b, kernel="nothing"),
        lambda: fl.sgemm(a, b, beta=1.0),
        lambda: fl.matmul(a, b, device="cuda:99"), lambda: fl.matmul(a, b, stream="x"),
        lambda: fl.sgemm(a, b, x, beta=1.0),
    )  # fmt: skip
    for i, call in enumerate(calls):
        before = None
        for _ in range(20):
            with contextlib.suppress(ValueError, TypeError, fl.CudaError):
                call()
            before = before or [sys.getrefcount(v) for v in held if v is not None]
        assert before == [sys.getrefcount(v) for v in held if v is not None], f"call {i}"


def test_every_argument_of_the_extension_can_be_converted():
    """A type without a conversion stays a C++ name in the signature, and every call is a TypeError."""
    for owner in (_core, _core.MatmulPlan, _core.DeviceArray, _core.DeviceBuffer):
        for name in dir(owner):
            signature = getattr(getattr(owner, name), "__doc__", None) or ""
            assert "std::" not in signature and "fl::" not in signature, f"{name}: {signature}"
