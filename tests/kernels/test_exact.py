"""What float32 computes exactly, every row computes exactly; NaN, Inf and subnormals are where IEEE 754 puts them.

Rows that refuse ``precision="strict"`` are held to the bound only, in test_sgemm.py.
"""

from __future__ import annotations

import functools
from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import (
    assert_equal_values,
    assert_product,
    assert_same_bits,
    full_mantissas,
    integers,
    permutation,
)
from support.layouts import result
from support.rows import adds_in_the_same_order, one_dot_product_each, rows

every_row = pytest.mark.parametrize("row", rows("sgemm"))
every_gemv_row = pytest.mark.parametrize("row", rows("sgemv"))
SIZES = (1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129)


def strict(row):
    if not row.strict:
        pytest.skip(f"{row.name} does not serve precision='strict'")
    return functools.partial(fl.sgemm, kernel=row.name, precision="strict")


@every_row
def test_identity_and_permutations(row, rng):
    """Odd 24-bit mantissas: any shortcut through fewer bits changes them."""
    sgemm = strict(row)
    for n in SIZES:
        for m in (1, n, 37):
            a, shuffle = full_mantissas(rng, (m, n)), permutation(rng, n)
            assert_same_bits(sgemm(a, np.eye(n, dtype=np.float32)), a, f"A @ I, {(m, n)}")
            assert_same_bits(sgemm(np.eye(n, dtype=np.float32), a, trans_b=True), a.T, f"I @ A^T, {(m, n)}")
            assert_same_bits(sgemm(a, shuffle), a @ shuffle, f"A @ P, {(m, n)}")
            assert_same_bits(sgemm(a, shuffle, alpha=-4.0), -4 * (a @ shuffle), f"-4 A @ P, {(m, n)}")


@every_row
def test_integers(row, rng):
    sgemm = strict(row)
    few = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33)
    for m, n, k in (*product(few, few, range(34)), (129, 127, 65), (64, 128, 300), (5, 6, 5000), (257, 130, 16)):
        a, b = integers(rng, (m, k), k), integers(rng, (k, n), k)
        assert_equal_values(sgemm(a, b), (a.astype(np.float64) @ b).astype(np.float32), f"{(m, n, k)}")


@every_row
def test_integers_with_scalars_and_layouts(row, rng):
    sgemm = strict(row)
    for m, n, k in ((5, 6, 7), (33, 31, 40), (128, 64, 32), (130, 131, 33)):
        a, b = integers(rng, (m, k), 8 * k), integers(rng, (k, n), 8 * k)
        c = integers(rng, (m, n), 8)
        want = 2 * (a.astype(np.float64) @ b) - 3 * c
        for left, right, addend in product(
            (a, np.asfortranarray(a)), (b, np.asfortranarray(b)), (c, np.asfortranarray(c))
        ):
            got = sgemm(left, right, addend, alpha=2.0, beta=-3.0)
            assert_equal_values(got, want.astype(np.float32), f"{(m, n, k)}")


@every_row
def test_scaling_by_powers_of_two(row, rng):
    """No rounding changes if a row of A, a column of B or all of a matrix is scaled by 2^e."""
    sgemm = strict(row)
    for m, n, k in ((9, 7, 33), (64, 65, 40), (130, 70, 128)):
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        rows_by = np.ldexp(np.float32(1), rng.integers(-40, 40, (m, 1)))
        columns_by = np.ldexp(np.float32(1), rng.integers(-20, 20, (1, n)))
        plain = sgemm(a, b)
        assert_same_bits(sgemm(a * rows_by, b), plain * rows_by, "rows of A")
        assert_same_bits(sgemm(a, b * columns_by), plain * columns_by, "columns of B")
        assert_same_bits(sgemm(a, b + b), plain + plain, "A (B + B)")
        assert_same_bits(sgemm(a, b, alpha=0.25), plain * np.float32(0.25), "alpha")


@every_row
def test_same_bits_every_time(row, rng):
    """From run to run, for a fresh result or a given one, whatever ran in between; for a slice of the rows."""
    sgemm = strict(row)
    for m, n, k in ((1, 1, 1000), (65, 33, 513), (200, 130, 70)):
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        first = sgemm(a, b)
        for _ in range(3):
            sgemm(np.full_like(a, np.nan), np.full_like(b, np.inf))  # leaves NaN in any workspace
            assert_same_bits(sgemm(a, b), first)
            assert_same_bits(sgemm(a, b, out=result((m, n), "padded_rows").array), first)
        half = m // 2
        if not adds_in_the_same_order(row, (m, n, k), (m - half, n, k), (max(half, 1), n, k)):
            continue
        assert_same_bits(sgemm(a[half:], b), first[half:], "a slice of the rows")
        assert_same_bits(np.vstack([sgemm(a[:half], b), sgemm(a[half:], b)]), first, "stacked blocks")


@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_errors_are_no_larger_than_twice_those_of_numpy(kind, rng):
    """On the same data, over u |A| |B|: what the length of the chains of additions was chosen for."""
    draw = rng.standard_normal if kind == "normal" else rng.random
    m, n, k = 192, 160, 1024
    a, b = draw((m, k), np.float32), draw((k, n), np.float32)
    exact = a.astype(np.float64) @ b
    size = np.abs(a).astype(np.float64) @ np.abs(b)

    def largest(c, columns=slice(None)):
        return float((np.abs(c - exact[:, columns]) / size[:, columns]).max() * 2**24)

    allowed = 2 * largest(np.matmul(a, b))
    for row in fl.kernels("sgemm"):
        if row.device == "cpu" and row.available and not one_dot_product_each(row):
            assert largest(fl.sgemm(a, b, kernel=row.name)) <= allowed, row.name


def test_dispatched_rows_have_the_same_bits_alone(rng):
    """Whichever rows of the table answer for some rows of A and for all, and in whichever order B lies; not for one."""
    different = []
    for m, n, k in product((9, 40, 300), (2, 3, 7, 9, 33, 130, 700), (15, 256, 300, 1030)):
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        whole = fl.matmul(a, b, device="cpu", precision="strict")
        for right, left in product((b, np.asfortranarray(b)), (a, np.asfortranarray(a))):
            for rows_of_a in (slice(0, 2), slice(2, 4), slice(1, 5), slice(3, 9), slice(0, m)):
                part = fl.matmul(left[rows_of_a], right, device="cpu", precision="strict")
                if part.tobytes() != whole[rows_of_a].tobytes():
                    different.append((m, n, k, rows_of_a, right.flags.c_contiguous, left.flags.c_contiguous))
    assert not different, different[:5]


# ---------------------------------------------------------------- NaN and infinities
SPECIAL_SHAPES = ((1, 1, 1), (5, 6, 7), (33, 40, 36), (65, 67, 64), (129, 132, 68), (66, 132, 300))


@every_row
def test_a_nan_poisons_its_row_or_column_and_no_more(row, rng):
    for m, n, k in SPECIAL_SHAPES:
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        for i, l in ((0, 0), (m - 1, k - 1), (m // 2, k // 3)):
            bad = a.copy()
            bad[i, l] = np.nan
            got = fl.sgemm(bad, b, kernel=row.name)
            want = np.zeros((m, n), bool)
            want[i] = True
            np.testing.assert_array_equal(np.isnan(got), want, f"NaN at A{(i, l)} of {(m, n, k)}")
            assert np.isfinite(got[~want]).all() and np.isfinite(fl.sgemm(a, b, kernel=row.name)).all(), "and no later"
        for l, j in ((0, 0), (k - 1, n - 1), (k // 2, n // 3)):
            bad = b.copy()
            bad[l, j] = np.nan
            got = fl.sgemm(a, bad, kernel=row.name)
            want = np.zeros((m, n), bool)
            want[:, j] = True
            np.testing.assert_array_equal(np.isnan(got), want, f"NaN at B{(l, j)} of {(m, n, k)}")


@every_row
def test_infinities(row, rng):
    for m, n, k in SPECIAL_SHAPES:
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        l, j = k // 2, n - 1
        b[l, j] = -np.inf
        got = fl.sgemm(a, b, kernel=row.name)
        assert_equal_values(got[:, j], np.copysign(np.float32(np.inf), -a[:, l]), f"{(m, n, k)}")
        assert np.isfinite(got[:, :j]).all()
        a[:, l] = 0.0  # 0 * inf is NaN: zeros are not skipped
        got = fl.sgemm(a, b, kernel=row.name)
        assert np.isnan(got[:, j]).all() and np.isfinite(got[:, :j]).all(), f"0 * inf, {(m, n, k)}"
        clean = np.where(np.isfinite(b), b, 0).astype(np.float32)
        c = np.full((m, n), np.inf, np.float32)
        assert_equal_values(fl.sgemm(a, clean, c, beta=-1.0, kernel=row.name), -c, f"beta * inf, {(m, n, k)}")


@every_row
def test_overflow(row):
    for m, n, k in ((3, 4, 1), (33, 34, 5), (129, 130, 16)):
        a, b = np.full((m, k), 2e38, np.float32), np.full((k, n), 2.0, np.float32)
        a[::2] *= -1
        want = np.where(np.arange(m)[:, None] % 2 == 0, -np.inf, np.inf).astype(np.float32)
        for alpha in (1.0, 1e-30):  # which multiplies the sum
            got = fl.sgemm(a, b, alpha=alpha, kernel=row.name)
            assert_equal_values(got, np.broadcast_to(want, (m, n)), f"{(m, n, k)}, alpha {alpha}")
    # In one order 3e38 + 3e38 - 3e38 overflows and in another it does not, but no order gives NaN.
    sums = fl.sgemm(np.full((5, 3), 3e38, np.float32), np.tile(np.float32([[1], [1], [-1]]), (1, 6)), kernel=row.name)
    assert ((sums == np.float32(3e38)) | (sums == np.inf)).all(), sums


@every_row
def test_subnormals_are_kept(row):
    for m, n, k in ((2, 3, 1), (17, 33, 8), (130, 65, 4)):
        a, b = np.full((m, k), 1e-20, np.float32), np.full((k, n), 1e-20, np.float32)
        assert_product(fl.sgemm(a, b, kernel=row.name), a, b, context=f"products, {(m, n, k)}")
        tiny, one = np.full((m, k), 2.0**-149, np.float32), np.ones((k, n), np.float32)
        assert_same_bits(fl.sgemm(tiny, one, kernel=row.name), np.full((m, n), k * 2.0**-149, np.float32), "operands")
        c = np.full((m, n), 3 * 2.0**-149, np.float32)
        assert_same_bits(fl.sgemm(tiny, one, c, alpha=0.0, beta=2.0, kernel=row.name), 2 * c, "beta * c")


@every_row
def test_zeros(row):
    """A sum of -0.0 products may be either zero; an empty sum is +0.0."""
    for m, n, k in ((3, 4, 5), (65, 66, 7)):
        a, b = np.full((m, k), -0.0, np.float32), np.ones((k, n), np.float32)
        assert (fl.sgemm(a, b, kernel=row.name) == 0).all()
        assert_same_bits(fl.sgemm(a[:, :0], b[:0], kernel=row.name), np.zeros((m, n), np.float32), "empty sum")


# ---------------------------------------------------------------- sgemv
@every_gemv_row
def test_sgemv_is_exact_where_float32_is(row, rng):
    for m, n in product((1, 3, 8, 33, 130), (1, 2, 4, 7, 16, 31, 32, 33, 64, 129, 515)):
        a, x = integers(rng, (m, n), n), integers(rng, n, n)
        want = (a.astype(np.float64) @ x).astype(np.float32)
        long = full_mantissas(rng, (m, n))
        for trans in (False, True):
            way = (lambda v: np.ascontiguousarray(v.T)) if trans else (lambda v: v)
            sgemv = functools.partial(fl.sgemv, trans=trans, kernel=row.name)
            assert_equal_values(sgemv(way(a), x), want, f"integers {(m, n)} trans {trans}")
            for column in {0, n // 2, n - 1}:
                unit = np.zeros(n, np.float32)
                unit[column] = 1
                assert_same_bits(sgemv(way(long), unit), long[:, column], f"column {column} of {(m, n)} trans {trans}")


@every_gemv_row
def test_sgemv_same_bits_every_time(row, rng):
    for (m, n), trans in product(((1, 1000), (130, 33), (700, 257)), (False, True)):
        a, x = rng.standard_normal((n, m) if trans else (m, n), np.float32), rng.standard_normal(n, np.float32)
        sgemv = functools.partial(fl.sgemv, trans=trans, kernel=row.name)
        first = sgemv(a, x)
        sgemv(np.full_like(a, np.nan), np.full_like(x, np.inf))
        assert_same_bits(sgemv(a, x), first)
        with fl.num_threads(1):
            assert_same_bits(sgemv(a, x), first, "one thread")


@every_gemv_row
def test_sgemv_nan_infinities_and_subnormals(row, rng):
    for (m, n), trans in product(((1, 1), (9, 5), (33, 32), (70, 130), (8, 515)), (False, True)):
        way = (lambda v: np.ascontiguousarray(v.T)) if trans else (lambda v: v)
        sgemv = functools.partial(fl.sgemv, trans=trans, kernel=row.name)
        a, x = rng.standard_normal((m, n), np.float32), rng.standard_normal(n, np.float32)
        bad = a.copy()
        bad[m // 2, n - 1] = np.nan
        np.testing.assert_array_equal(np.isnan(sgemv(way(bad), x)), np.arange(m) == m // 2, f"{(m, n)} trans {trans}")
        bad[m // 2, n - 1] = np.inf
        got = sgemv(way(bad), x)
        assert got[m // 2] == np.copysign(np.inf, x[n - 1]) and np.isfinite(np.delete(got, m // 2)).all()
        assert np.isnan(sgemv(way(bad), np.zeros_like(x))[m // 2]), "0 * inf is NaN"
        tiny = np.full((m, n), 2.0**-149, np.float32)
        assert_same_bits(sgemv(way(tiny), np.ones_like(x)), np.full(m, n * 2.0**-149, np.float32), "subnormals")
