"""Rows that serve ``precision="accurate"`` alone: the bound of docs/accuracy.md on data made to break it."""

from __future__ import annotations

import functools
from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from accuracy import assert_product, assert_same_bits
from rows import rows

ROWS = [param for param in rows("sgemm") if not param.values[0].strict]
pytestmark = pytest.mark.gpu
accurate_row = pytest.mark.parametrize("row", ROWS)
SHAPES = ((70, 66, 256), (129, 200, 512), (33, 140, 1100), (260, 140, 2049))


def signs(rng, shape):
    return rng.choice((-1.0, 1.0), shape)


def spread(rng, shape, octaves):
    return signs(rng, shape) * 2.0 ** rng.uniform(-octaves / 2, octaves / 2, shape)


def data(kind, m, n, k):
    """Operands in float64 whose values are float32 numbers after rounding."""
    rng = np.random.default_rng([m, n, k, len(kind)])
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    steps = 2.0 ** rng.integers(-58, 59, max(m, n, k))
    if kind == "uniform":
        a, b = rng.random((m, k)), rng.random((k, n))
    elif kind == "exp_normal":
        a, b = signs(rng, a.shape) * np.exp(a), signs(rng, b.shape) * np.exp(b)
    elif kind == "hundred_octaves":
        a, b = spread(rng, a.shape, 100), spread(rng, b.shape, 100)
    elif kind == "many_octaves":
        a, b = (spread(rng, x.shape, 180) * 2.0**-50 for x in (a, b))
    elif kind == "hilbert":
        a, b = 1.0 / (np.arange(m)[:, None] + np.arange(k) + 1), 1.0 / (np.arange(k)[:, None] + np.arange(n) + 1)
    elif kind == "huge_and_tiny_rows":
        a, b = a * np.where(np.arange(m) % 2, 2.0**100, 2.0**-100)[:, None], b * 2.0**20
    elif kind == "twelve_decades":
        a, b = spread(rng, a.shape, 40), spread(rng, b.shape, 40)
    elif kind == "graded":
        a, b = a * steps[:k], b / steps[:k, None]
    elif kind == "scaled_lines":
        a, b = a * steps[:m, None], b / steps[:n]
    elif kind == "tiny_lines":
        a[::3] *= 2.0**-125
    elif kind == "subnormal":
        a *= 2.0**-135
    elif kind == "near_the_largest":
        a, b = a * 2.0**124, b * 2.0**-20
    elif kind == "integers":
        a, b = (rng.integers(-(2**24), 2**24 + 1, x.shape).astype(np.float64) for x in (a, b))
    elif kind == "one_outlier":
        a, b = np.ones((m, k)), np.ones((k, n))
        a[np.arange(m), np.arange(m) % k] = 1e9
    elif kind == "growing":  # a scale guessed from the start of a line is wrong
        a, b = a * 2.0 ** (np.arange(k) * 40 // k - 20), b * 2.0 ** (np.arange(k) * 30 // k)[:, None]
    elif kind == "late_start":
        a[:, : k // 2] = 0.0
    elif kind == "cancelling":
        half = k // 2
        a, b = np.hstack([a[:, :half], -a[:, :half]]), np.vstack([b[:half], b[:half]])
    elif kind == "sparse":
        a, b = a * (rng.random(a.shape) < 0.02), b * (rng.random(b.shape) < 0.5)
    elif kind == "zero_lines":
        a[1::2], b[:, ::3] = 0.0, 0.0
    return a.astype(np.float32), b.astype(np.float32)


KINDS = (
    *("normal", "uniform", "exp_normal", "twelve_decades", "graded", "scaled_lines", "tiny_lines", "subnormal"),
    *("hundred_octaves", "many_octaves", "hilbert", "huge_and_tiny_rows"),
    *("near_the_largest", "integers", "one_outlier", "growing", "late_start", "cancelling", "sparse", "zero_lines"),
)


@accurate_row
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_holds_on_any_finite_data(row, kind):
    for (m, n, k), (trans_a, trans_b) in product(SHAPES, product((False, True), repeat=2)):
        a, b = data(kind, m, n, k)
        sgemm = functools.partial(fl.sgemm, trans_a=trans_a, trans_b=trans_b, kernel=row.name)
        left, right = np.ascontiguousarray(a.T) if trans_a else a, np.ascontiguousarray(b.T) if trans_b else b
        got = sgemm(left, right)
        assert_product(got, a, b, context=f"{kind} {(m, n, k)} {trans_a}, {trans_b}")
        assert_same_bits(sgemm(left, right), got, f"{kind} {(m, n, k)}: a second run")


@accurate_row
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_special_values_are_where_strict_puts_them(row, value, rng):
    for m, n, k in SHAPES:
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        a[m // 2, k - 1], b[k // 3, n - 1], b[k // 3, 0] = value, value, 0.0
        got, want = (fl.sgemm(a, b, kernel=row.name), fl.sgemm(a, b, device="cuda", precision="strict"))
        special = ~np.isfinite(want)
        np.testing.assert_array_equal(got[special], want[special])
        assert np.isfinite(got[~special]).all()


@accurate_row
def test_finite_data_after_special_values(row, rng):
    """The workspace of a call that fell back is the next one's."""
    a, b = rng.standard_normal((150, 300), np.float32), rng.standard_normal((300, 170), np.float32)
    bad = a.copy()
    bad[3, 4] = np.nan
    fl.sgemm(bad, b, kernel=row.name)
    assert_product(fl.sgemm(a, b, kernel=row.name), a, b)


@accurate_row
@pytest.mark.parametrize("k", [256, 1024, 8192])
@pytest.mark.parametrize("kind", ["normal", "uniform", "exp_normal", "twelve_decades"])
def test_no_less_accurate_in_norm_than_a_chain_of_float32(row, kind, k):
    a, b = data(kind, 256, 256, k)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    accurate, strict = (
        np.linalg.norm(fl.sgemm(a, b, kernel=name, device="cuda", precision=precision) - exact)
        for name, precision in ((row.name, "accurate"), ("naive", "strict"))
    )
    assert accurate <= 1.01 * strict


@accurate_row
def test_strict_is_refused(row):
    one = np.ones((4, 4), np.float32)
    with pytest.raises(ValueError, match="needs precision='accurate'"):
        fl.sgemm(one, one, kernel=row.name, precision="strict")


@pytest.mark.parametrize("values", ["normal", "uniform", "graded", "twelve_decades", "tiny_lines", "subnormal"])
@pytest.mark.parametrize("k", [256, 1000, 1300])
def test_three_slices_are_exact_for_the_identity(values, k):
    a, _ = data(values, 200, 8, k)
    eye = np.eye(k, dtype=np.float32)
    np.testing.assert_array_equal(fl.sgemm(a, eye, kernel="bf16x6"), a)
    np.testing.assert_array_equal(fl.sgemm(eye, np.ascontiguousarray(a.T), kernel="bf16x6"), a.T)


def on_device(*operands):
    """Arrays whose product is one launch of a row: from host memory it would be several, of smaller products."""
    return [fl.DeviceArray.from_numpy(x) for x in operands]


LARGE = (2048, 2052, 4096)  # from here on three slices stand by for two


@pytest.mark.parametrize(
    ("kind", "answers"),
    [("normal", "fp16x2"), ("graded", "bf16x6"), ("twelve_decades", "bf16x6"), ("many_octaves", "strict")],
)
def test_which_slices_answer_is_decided_by_the_data(kind, answers):
    """Each scheme has bits of its own: who answered shows in the result."""
    a, b = data(kind, *LARGE)
    whole = on_device(a, b)
    got = {name: fl.sgemm(*whole, kernel=name).numpy() for name in ("fp16x2", "bf16x6")}
    if answers == "fp16x2":
        assert (got["fp16x2"] != got["bf16x6"]).any()
    else:
        assert_same_bits(got["fp16x2"], got["bf16x6"], kind)
    assert_product(got["fp16x2"], a, b, context=kind)
    assert_product(got["bf16x6"], a, b, context=kind)


@accurate_row
@pytest.mark.parametrize("pad", [0, 1])
def test_many_tiles_with_beta_in_place(row, pad):
    """More tiles than multiprocessors: the old C of one is read while the one before is stored."""
    rng = np.random.default_rng(pad)
    m, n, k = 2100, 4200 + pad, 300
    a, b, c = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
    got = fl.sgemm(*on_device(a, b, c), alpha=-1.5, beta=0.5, kernel=row.name).numpy()
    assert_product(got, a, b, c, -1.5, 0.5, context=row.name)


@accurate_row
def test_a_million_positive_terms(row):
    rng = np.random.default_rng(6)
    a, b = rng.random((20, 10**6), np.float32), rng.random((10**6, 24), np.float32)
    got, want = fl.sgemm(a, b, kernel=row.name), a.astype(np.float64) @ b.astype(np.float64)
    assert np.linalg.norm(got - want) <= 5e-6 * np.linalg.norm(want)
