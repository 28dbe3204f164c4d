"""The bits of a CPU product are those of chains of 256 FMAs: from any kernel, tile, slice, layout and thread count."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_same_bits
from support.operands import normal
from support.reproducible import program
from support.rows import rows
from support.source_tree import needs_source_tree

pytestmark = needs_source_tree
ONE_CHAIN = "reference"
SAME_ORDER = [row for row in rows("sgemm", "cpu", strict=True) if row.values[0].name != ONE_CHAIN]
SHAPES = ((37, 50, 700), (3, 70, 513), (64, 33, 256), (20, 4, 1030), (16, 16, 257), (40, 34, 100))


@pytest.mark.parametrize("row", SAME_ORDER)
def test_chains_in_ascending_k(row, rng):
    _, product = program(row.traits.reproducible)
    for m, n, k in SHAPES:
        a, b = normal(rng, m, k), normal(rng, k, n)
        for alpha in (1.0, -0.7):
            want, context = product(a, b, alpha), f"{m}x{n}x{k}, alpha {alpha}"
            for x in (a, np.asfortranarray(a)):
                for y in (b, np.asfortranarray(b)):
                    assert_same_bits(fl.sgemm(x, y, alpha=alpha, kernel=row.name), want, context)
            part = fl.sgemm(a[1:3], b[:, 1:4], alpha=alpha, kernel=row.name)
            assert_same_bits(part, want[1:3, 1:4], f"{context}, rows and columns alone")


# An addend, and two factors whose product is 2^-57 more, or less, than half a unit in its last place: a sum that is
# rounded to float64 first lies half way.
NEXT = 1 + 2.0**-23
HALF_WAY = ((1.0, 1397419 * 2.0**-28, 6147 * 2.0**-29, NEXT), (NEXT, 4196353 * 2.0**-28, 2047 * 2.0**-29, NEXT))


@pytest.mark.parametrize("row", [row for row in SAME_ORDER if row.values[0].traits.reproducible])
def test_sums_are_rounded_once(row):
    for addend, x, y, want in HALF_WAY:
        for sign in (1, -1):
            a = np.tile(np.float32([sign * addend, sign * x]), (3, 1))
            b = np.tile(np.float32([[1], [y]]), (1, 5))
            assert_same_bits(fl.sgemm(a, b, kernel=row.name), np.full((3, 5), sign * want, np.float32), f"{want}")


def test_what_dispatch_chooses(rng):
    """On one and several threads; with one row or one column a product is another sum."""
    best = next(row for row in reversed(fl.kernels("sgemm")) if row.device == "cpu" and row.available)
    _, product = program(best.needs != "baseline")
    a, b = normal(rng, 150, 600), normal(rng, 600, 130)
    want = product(a, b)
    for threads in (1, 2, 3):
        with fl.num_threads(threads):
            assert_same_bits(fl.matmul(a, b, device="cpu", precision="strict"), want, f"{threads} threads")
            assert_same_bits(fl.matmul(a[:5], b, device="cpu"), want[:5], f"{threads} threads, five rows")
            assert_same_bits(fl.matmul(a, a.T, device="cpu"), product(a, a.T), "symmetric")


def test_the_page_rounds_once():
    """Cases whose sum in float64 lies half way between two float32."""
    fma, _ = program()
    one, tiny = np.float32(1), np.float32(2.0**-60)
    half_way = np.float32(1 + 2.0**-23) * np.float32(2.0**-24)  # a little more than half a unit of 1
    assert fma(np.float32(2.0**-24), one, one) == one  # a tie, to even
    assert fma(half_way, one, one) == np.float32(1 + 2.0**-23)
    x, y = np.float32(1 + 2.0**-12), np.float32(1 + 2.0**-12)  # 1 + 2^-11 + 2^-24: a tie of float32
    assert fma(x, y, tiny) == np.float32(1 + 2.0**-11 + 2.0**-23)
    assert fma(x, y, -tiny) == np.float32(1 + 2.0**-11)
