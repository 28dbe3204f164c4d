"""``fl.ssyrk``: within the bound in the triangle that was asked for, and nothing else is read or written."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import fastlinalg as fl
from support.accuracy import assert_same_bits, assert_within, oracle
from support.layouts import BROADCAST_LAYOUTS, MATRIX_LAYOUTS, matrix_input, result
from support.operands import normal
from support.rows import rows

F32 = np.float32
# Around a square on the diagonal and a few of them; k around a chain and a block of k.
SHAPES = ((0, 3), (1, 1), (2, 0), (5, 7), (17, 33), (64, 20), (127, 5), (128, 300), (129, 31), (200, 257), (257, 64),
          (300, 1), (385, 40), (513, 17), (150, 1030))  # fmt: skip
SCALARS = ((1.0, 0.0), (-0.75, 0.0), (1.0, 1.0), (1.5, -0.5), (0.0, 0.0), (0.0, 2.0), (0.0, 1.0))
PARTS = (None, "L", "U")
WAYS = tuple(product(PARTS, (False, True)))


def kept(n, uplo):
    """Where a result is written."""
    triangle = np.tri(n, dtype=bool)
    return np.ones((n, n), bool) if uplo is None else triangle if uplo == "L" else triangle.T


def check(got, beside, a, uplo, c=None, alpha=1.0, beta=0.0, context=""):
    """The product with `a` as it is, and `beside` the triangle the bits that were there."""
    if alpha == 0.0:  # the operand is not read
        a = np.zeros((*a.shape[:-1], 0), F32)
    written = kept(got.shape[-1], uplo)
    want, bound = oracle(a, a.swapaxes(-1, -2), c, alpha, beta)
    assert_within(np.where(written, got, F32(0)), np.where(written, want, 0), np.where(written, bound, 0), context)
    assert_same_bits(np.where(written, F32(0), got), np.where(written, F32(0), beside), context)


@pytest.mark.parametrize(("uplo", "trans"), WAYS)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_shape_and_scalar(rng, uplo, trans, threads):
    with fl.num_threads(threads):
        for n, k in SHAPES:
            a = normal(rng, n, k)
            stored = np.ascontiguousarray(a.T) if trans else a
            for alpha, beta in SCALARS:
                c = np.where(kept(n, uplo), normal(rng, n, n), F32(np.nan)) if beta else np.full((n, n), np.nan, F32)
                options = {"alpha": alpha, "beta": beta, "trans": trans, "uplo": uplo, "device": "cpu"}
                context = f"{n}x{k}, alpha {alpha}, beta {beta}"
                before = c.copy()
                check(fl.ssyrk(stored, c, **options), np.zeros((n, n), F32), a, uplo, c, alpha, beta, context)
                assert_same_bits(c, before)
                assert fl.ssyrk(stored, c, out=c, **options) is c
                check(c, before, a, uplo, before, alpha, beta, context)


@pytest.mark.parametrize("row", rows("sgemm", "cpu"))
@pytest.mark.parametrize("uplo", PARTS)
def test_bits_of_the_kernel_that_was_asked_for(row, uplo, rng):
    for n, k in ((5, 7), (67, 41), (150, 300)):
        a, c = normal(rng, n, k), normal(rng, n, n)
        for beta in (0.0, -0.5):
            options = {"alpha": 1.5, "beta": beta, "kernel": row.name}
            want = np.where(kept(n, uplo), fl.sgemm(a.copy(), a.T, c, **options), F32(0))
            assert_same_bits(fl.ssyrk(a, c, uplo=uplo, **options), want, f"{n}x{k}")


@pytest.mark.parametrize("uplo", PARTS)
def test_every_layout(uplo, rng):
    for n in (33, 140):
        values, addend = normal(rng, n, 41), normal(rng, n, n)
        for name in (*MATRIX_LAYOUTS, *BROADCAST_LAYOUTS):
            a = matrix_input(values, name)
            for trans, x in ((False, a), (True, a.T)):
                got = fl.ssyrk(x, addend, alpha=2, beta=1, trans=trans, uplo=uplo, device="cpu")
                check(got, np.zeros((n, n), F32), a, uplo, addend, 2.0, 1.0, name)
        for name in MATRIX_LAYOUTS:
            out = result((n, n), name)
            before = out.array.copy()
            fl.ssyrk(values, addend, beta=0.5, uplo=uplo, out=out.array, device="cpu")
            check(out.array, before, values, uplo, addend, 1.0, 0.5, f"out {name}")
            out.assert_intact(name)
            out = result((n, n), name, addend)
            fl.ssyrk(values, out.array, beta=0.5, uplo=uplo, out=out.array, device="cpu")
            check(out.array, addend, values, uplo, addend, 1.0, 0.5, f"c and out {name}")
            out.assert_intact(name)
        for name in BROADCAST_LAYOUTS:
            c = matrix_input(addend, name)
            check(fl.ssyrk(values, c, beta=2, uplo=uplo), np.zeros((n, n), F32), values, uplo, c, 1.0, 2.0, f"c {name}")


@pytest.mark.parametrize(("uplo", "trans"), WAYS)
def test_batches(rng, uplo, trans):
    for shape in ((3, 40, 20), (2, 3, 130, 9), (0, 5, 5), (1, 150, 30)):
        a = normal(rng, *shape)
        n = shape[-2]
        stored = a.swapaxes(-1, -2) if trans else a
        c = normal(rng, *shape[:-1], n)
        for addend in (c, c[..., :1, :], F32(2.5)):
            got = fl.ssyrk(stored, np.asarray(addend), alpha=-1, beta=3, trans=trans, uplo=uplo, device="cpu")
            check(got, np.zeros_like(got), a, uplo, addend, -1.0, 3.0, str(shape))
        out = np.moveaxis(np.empty((n, *shape[:-2], n + 2), F32), 0, -2)[..., :n]
        before = normal(rng, *out.shape)
        out[...] = before
        fl.ssyrk(stored, trans=trans, uplo=uplo, out=out, device="cpu")
        check(out, before, a, uplo, context=str(shape))


def test_whole_results_are_those_of_the_product(rng):
    a, c = normal(rng, 190, 75), normal(rng, 190, 190)
    assert_same_bits(fl.ssyrk(a, device="cpu"), fl.matmul(a, a.T, device="cpu"))
    assert_same_bits(fl.ssyrk(a, trans=True, alpha=2, device="cpu"), fl.sgemm(a, a, trans_a=True, alpha=2))
    assert_same_bits(fl.ssyrk(a, c, beta=0.5), fl.sgemm(a, a, c, beta=0.5, trans_b=True))
    wide = np.arange(12, dtype=np.int16).reshape(3, 4)
    for uplo in PARTS:
        got = fl.ssyrk(wide, uplo=uplo, dtype=np.float32)
        assert_same_bits(got, np.where(kept(3, uplo), wide @ wide.T, 0).astype(F32))


@pytest.mark.parametrize(("uplo", "trans"), WAYS)
def test_out_may_overlap_the_operand_and_the_addend(rng, uplo, trans):
    values = normal(rng, 300, 300)
    for n in (40, 250):
        here, beside, backwards = np.s_[:n, :n], np.s_[3 : n + 3, 5 : n + 5], np.s_[n - 1 :: -1, :n]
        a = values[here].T if trans else values[here]
        for out_place, c_place in product((here, beside, backwards), repeat=2):
            memory = values.copy()
            fl.ssyrk(memory[here], memory[c_place], beta=1, trans=trans, uplo=uplo, out=memory[out_place])
            context = f"{n} {out_place} {c_place}"
            check(memory[out_place], values[out_place], a, uplo, values[c_place], 1.0, 1.0, context)
            memory[out_place] = values[out_place]
            assert_same_bits(memory, values)  # and nothing around it


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_nan_and_infinity(rng, uplo):
    """In the operand as in the whole product; beside the triangle they stay where they are, and stay there alone."""
    a = normal(rng, 300, 60)
    a[3, 5], a[170, 6], a[299, 0] = np.nan, np.inf, -np.inf
    whole = fl.ssyrk(a, device="cpu")
    got = fl.ssyrk(a, uplo=uplo, device="cpu")
    np.testing.assert_array_equal(got, np.where(kept(300, uplo), whole, 0))
    a = normal(rng, 300, 60)
    for special in (np.nan, np.inf):
        c = np.where(kept(300, uplo), F32(1), F32(special))
        got = fl.ssyrk(a, c, beta=2, uplo=uplo, out=c.copy(), device="cpu")
        check(got, c, a, uplo, np.ones((300, 300), F32), 1.0, 2.0)


def test_errors(rng):
    a, square = normal(rng, 4, 3), np.zeros((4, 4), F32)
    read_only = np.zeros((4, 4), F32)
    read_only.flags.writeable = False
    for uplo in PARTS:
        for error, words, operands, options in (
            (ValueError, "ssyrk: beta=1 needs c, which was not given", (a,), {"beta": 1}),
            (ValueError, r"ssyrk: c has shape \(3, 3\), which cannot be broadcast", (a, a.T @ a), {"beta": 1}),
            (ValueError, r"ssyrk: out has shape \(4, 3\), the result needs \(4, 4\)", (a,), {"out": a}),
            (ValueError, "ssyrk: a must have at least 2 dimensions", (a[0],), {}),
            (ValueError, "read-only", (a,), {"out": read_only}),
            (ValueError, "elements of out share memory", (a,), {"out": as_strided(square, (4, 4), (4, 4))}),
            (ValueError, "unknown sgemm kernel 'nonsense'", (a,), {"kernel": "nonsense"}),
            (TypeError, "float64", (a.astype(float),), {}),
            (TypeError, "ssyrk: trans must be True or False, got 1", (a,), {"trans": 1}),
        ):
            with pytest.raises(error, match=words):
                fl.ssyrk(*operands, uplo=uplo, **options)
    for error, uplo, words in (
        (ValueError, "X", "ssyrk: uplo must be None, 'L' or 'U', got 'X'"),
        (ValueError, "lower", "ssyrk: uplo must be None, 'L' or 'U', got 'lower'"),
        (TypeError, 1, "ssyrk: uplo must be None, 'L' or 'U', got 1"),
    ):
        with pytest.raises(error, match=words):
            fl.ssyrk(a, uplo=uplo)


def test_large_triangles(rng):
    """Many squares, and products of several panels, on more threads than one."""
    for n, k, threads in ((1100, 20, 2), (700, 600, 3)):
        a, c = normal(rng, n, k), normal(rng, n, n)
        with fl.num_threads(threads):
            for uplo, beta in product("LU", (0.0, 0.5)):
                for order in "CF":
                    out = np.array(c, order=order)
                    fl.ssyrk(a, out, beta=beta, uplo=uplo, out=out, device="cpu")
                    check(out, c, a, uplo, c, 1.0, beta, f"{n}x{k} {uplo} {order}")
