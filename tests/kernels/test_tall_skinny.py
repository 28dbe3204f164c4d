"""Thin products so large that the warps of their kernel have twice the rows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from support.accuracy import assert_within, oracle
from support.device import place
from support.device import product as by_row
from support.rows import TALL_SKINNY, rows

pytestmark = pytest.mark.gpu
SHAPES = ((1100, 14003, 16), (1300, 12032, 11), (1030, 14700, 12))  # m, k and the columns


@pytest.mark.parametrize("row", rows("sgemm", names=TALL_SKINNY))
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("placement", ["aligned", "odd_shifted"])
def test_large_thin_products(row, shape, placement, rng):
    """Every order of both operands, with few columns and with few rows, with beta and without."""
    m, k, n = shape
    a, b, c = (rng.standard_normal((1, *size), np.float32) for size in ((m, k), (k, n), (m, n)))
    for alpha, beta in ((1.0, 0.0), (-0.5, 2.0)):
        want, bound = oracle(a, b, c, alpha, beta)
        start = c if beta else np.full_like(c, np.nan)
        for trans_a, trans_b in product((False, True), repeat=2):
            context = f"{shape} {placement} trans {trans_a}, {trans_b} beta {beta}"
            left, right = place(a, placement, trans_a), place(b, placement, trans_b)
            got = by_row(row.name, left, right, place(start, placement), alpha, beta)
            assert_within(got, want, bound, context)
        a_transposed, b_transposed, start_transposed = (x.swapaxes(-1, -2) for x in (a, b, start))
        left, right = place(b_transposed, placement), place(a_transposed, placement)
        got = by_row(row.name, left, right, place(start_transposed, placement), alpha, beta)
        assert_within(got, want.swapaxes(-1, -2), bound.swapaxes(-1, -2), f"{shape} {placement} few rows, beta {beta}")
