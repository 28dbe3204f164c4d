"""The checks can fail: results with the faults that kernels have in practice, each of which has to be noticed.

How to seed faults into the kernels themselves: tests/README.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from support.accuracy import (
    assert_equal_values,
    assert_product,
    assert_same_bits,
    full_mantissas,
    integers,
    oracle,
    truncated_to_tf32,
)
from support.layouts import MATRIX_LAYOUTS, matrix_input, result
from support.shapes import EDGES, SGEMM, SGEMM_FEW, SGEMV, TILES, TRANSPOSE

F32 = np.float32
SHAPE = (33, 34, 65)


def right(a, b, c, alpha, beta):
    """A correct float32 answer with an accumulator in ascending k."""
    acc = np.zeros((a.shape[0], b.shape[1]), F32)
    for l in range(a.shape[1]):
        acc += a[:, l : l + 1] * b[l : l + 1]
    return F32(alpha) * acc + (F32(beta) * c if beta else F32(0))


def edge_tile_lost(a, b, c, alpha, beta):
    got = right(a, b, c, alpha, beta)
    got[32:] = 0
    return got


def edge_tile_taken_twice(a, b, c, alpha, beta):
    got = right(a, b, c, alpha, beta)
    got[:, 32:] += F32(alpha) * (a[:, 64:] @ b[64:, 32:])
    return got


def one_element_not_written(a, b, c, alpha, beta):
    got = right(a, b, c, alpha, beta)
    got[-1, -1] = np.nan
    return got


def stale_tile(a, b, c, alpha, beta):
    """One barrier too few: the last K step multiplies the tile of the step before."""
    stale = a.copy()
    stale[:, 64:] = a[:, 56:57]
    return right(stale, b, c, alpha, beta)


FAULTS = {
    "k one too short": lambda a, b, c, alpha, beta: right(a[:, :-1], b[:-1], c, alpha, beta),
    "k one too long": lambda a, b, c, alpha, beta: right(np.c_[a, a[:, -1]], np.r_[b, b[-1:]], c, alpha, beta),
    "first k missed": lambda a, b, c, alpha, beta: right(a[:, 1:], b[1:], c, alpha, beta),
    "alpha neglected": lambda a, b, c, alpha, beta: right(a, b, c, 1.0, beta),
    "alpha applied to c too": lambda a, b, c, alpha, beta: right(a, b, F32(alpha) * c, alpha, beta),
    "beta neglected": lambda a, b, c, alpha, beta: right(a, b, c, alpha, 0.0),
    "beta taken as 1": lambda a, b, c, alpha, beta: right(a, b, c, alpha, 1.0),
    "c added twice": lambda a, b, c, alpha, beta: right(a, b, c, alpha, 2 * beta),
    "a transposed": lambda a, b, c, alpha, beta: right(a.T.reshape(a.shape), b, c, alpha, beta),
    "b with the wrong leading dimension": lambda a, b, c, alpha, beta: right(a, b.T.reshape(b.shape), c, alpha, beta),
    "result transposed": lambda a, b, c, alpha, beta: right(a, b, c, alpha, beta).T.reshape(c.shape),
    "rows swapped": lambda a, b, c, alpha, beta: right(a, b, c, alpha, beta)[[1, 0, *range(2, len(a))]],
    "edge tile lost": edge_tile_lost,
    "edge tile taken twice": edge_tile_taken_twice,
    "one element not written": one_element_not_written,
    "stale tile": stale_tile,
    "truncated to TF32": lambda a, b, c, alpha, beta: right(truncated_to_tf32(a), truncated_to_tf32(b), c, alpha, beta),
    "half precision": lambda a, b, c, alpha, beta: right(
        a.astype("f2").astype(F32), b.astype("f2").astype(F32), c, alpha, beta
    ),
    "sign lost": lambda a, b, c, alpha, beta: np.abs(right(a, b, c, alpha, beta)),
    "float64 result": lambda a, b, c, alpha, beta: right(a, b, c, alpha, beta).astype(np.float64),
    "a row too few": lambda a, b, c, alpha, beta: right(a, b, c, alpha, beta)[:-1],
}


def operands(rng):
    m, n, k = SHAPE
    return rng.standard_normal((m, k), F32), rng.standard_normal((k, n), F32), rng.standard_normal((m, n), F32)


def test_the_right_answer_passes(rng):
    a, b, c = operands(rng)
    assert_product(right(a, b, c, -1.5, 0.75), a, b, c, -1.5, 0.75)
    assert_product(right(a, b, c, 1.0, 0.0), a, b)
    assert_product(((a.astype(np.float64) @ b) * -1.5 + c * 0.75).astype(F32), a, b, c, -1.5, 0.75)


def test_the_oracle_is_exact_and_its_bound_what_the_roundings_make(rng):
    """By rational numbers, and a first-order count: of k products and sums, of alpha and beta, and of beta * c."""
    a, b, c = operands(rng)
    value, bound = oracle(a, b, c, -1.5, 0.75)
    k = len(b)
    for i, j in ((0, 0), (16, 9), (32, 33)):
        products = [Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[i], b[:, j], strict=True)]
        size, addend = Fraction(3, 2) * sum(map(abs, products)), Fraction(3, 4) * Fraction(float(c[i, j]))
        exact = Fraction(-3, 2) * sum(products) + addend
        assert abs(Fraction(float(value[i, j])) - exact) < size / 2**45
        least = ((k + 2) * size + 2 * abs(addend)) / 2**24
        assert least <= Fraction(float(bound[i, j])) < least * Fraction(1001, 1000)


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_products_are_noticed(fault, rng):
    a, b, c = operands(rng)
    with pytest.raises(AssertionError):
        assert_product(FAULTS[fault](a, b, c, -1.5, 0.75), a, b, c, -1.5, 0.75)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_selftest_notices_them_too(fault, rng):
    from fastlinalg import _check

    a, b, c = operands(rng)
    want = _check.expected_result("sgemm", (a, b, c), {"alpha": -1.5, "beta": 0.75})
    assert _check.error_units(right(a, b, c, -1.5, 0.75), want) <= 1
    assert not _check.error_units(FAULTS[fault](a, b, c, -1.5, 0.75), want) <= 1


def test_c_read_although_beta_is_zero(rng):
    a, b, _ = operands(rng)
    poisoned = np.full(SHAPE[:2], np.nan, F32)
    with pytest.raises(AssertionError):
        assert_product(right(a, b, np.zeros_like(poisoned), 1.0, 0.0) + F32(0) * poisoned, a, b)


def test_one_ulp_where_the_result_is_exact(rng):
    a = full_mantissas(rng, (9, 9))
    assert_same_bits(a.copy(), a)
    for wrong in (np.nextafter(a, F32(np.inf)), truncated_to_tf32(a), a.T.copy()):
        with pytest.raises(AssertionError):
            assert_same_bits(wrong, a)
    assert (truncated_to_tf32(a) != a).all(), "every mantissa has a bit to lose"
    whole = integers(rng, (9, 9), 100)
    with pytest.raises(AssertionError):
        assert_equal_values(whole + (np.arange(81).reshape(9, 9) == 40), whole)
    with pytest.raises(AssertionError):
        assert_same_bits(np.zeros(3, F32), np.full(3, -0.0, F32))
    with pytest.raises(AssertionError):
        assert_equal_values(np.array([np.nan, 1], F32), np.array([1, 1], F32))


def test_flushed_subnormals_are_noticed():
    a, b = np.full((2, 3), 1e-20, F32), np.full((3, 2), 1e-20, F32)
    want, bound = oracle(a, b)
    assert (np.abs(want) > 4 * bound).all(), "zero is far outside the bound"


def test_cancelling_sums_have_a_bound_that_does_not_cancel(rng):
    a, b, _ = operands(rng)
    want, bound = oracle(np.c_[a, -a], np.r_[b, b])
    assert np.abs(want).max() < 1e-12 and bound.min() > 1e-6


@pytest.mark.parametrize("layout", MATRIX_LAYOUTS)
def test_writes_beside_the_result_are_noticed(layout):
    for shape in ((5, 7), (1, 4), (4, 1), (8, 8)):
        out = result(shape, layout)
        out.array[...] = 1.0
        out.assert_intact()
        outside = np.flatnonzero(out.outside())
        for at in {0, len(outside) // 2, len(outside) - 1}:
            kept = out.parent[outside[at]]
            out.parent[outside[at]] ^= 1
            with pytest.raises(AssertionError):
                out.assert_intact()
            out.parent[outside[at]] = kept
        if layout in ("padded_rows", "strided_columns", "strided_both") and shape[0] > 1:
            inside = outside[(outside > out.origin) & (outside < out.origin + 4 * shape[1] + 4)]
            assert inside.size, "the gaps between the elements are guarded too"


def test_reads_beside_an_input_are_noticed(rng):
    a = matrix_input(rng.standard_normal((5, 7), F32), "padded_rows")
    too_wide = np.lib.stride_tricks.as_strided(a, (5, 8), a.strides)
    assert np.isfinite(a).all() and np.isnan(too_wide[:, 7]).all()
    before = np.lib.stride_tricks.as_strided(a[::-1], (6, 7), (-a.strides[0], 4))[-1]
    assert np.isnan(before).all()


def test_the_shapes_have_edges_of_every_tile():
    for tile in TILES:
        assert {tile - 1, tile, tile + 1} <= set(EDGES)
        for shapes, dims in ((SGEMM, 3), (SGEMV, 2), (TRANSPOSE, 2)):
            for dim in range(dims):
                seen = {shape[dim] for shape in shapes}
                assert {0, 1, tile - 1, tile, tile + 1} <= seen, (tile, dim)
    assert {0, 1} <= {k for _, _, k in SGEMM_FEW}
