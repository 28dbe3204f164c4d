"""Strict GPU kernels with a shorter twin for whole tiles: the twin gives the same bits, and writes nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from support.accuracy import assert_same_bits, assert_within, oracle
from support.device import place, product
from support.device_libraries import Announced
from support.rows import FULL_TILES, rows

pytestmark = pytest.mark.gpu
every_row = pytest.mark.parametrize("row", rows("sgemm", names=FULL_TILES))


@every_row
@pytest.mark.parametrize("steps", [1, 2, 5, 17])
def test_whole_tiles_give_the_same_bits(row, steps, rng):
    """As 4-byte copies do: one step of k, as many as a ring holds and more; one wave of tiles and two; any scalars."""
    rows_of, cols_of, k_of = FULL_TILES[row.name]
    for tiles_down, tiles_across, batch in ((3, 2, 1), (2, 3, 1), (2, 1, 3), (1, 1, 150)):
        m, n, k = tiles_down * rows_of, tiles_across * cols_of, steps * k_of
        if batch * max(m * k, k * n, m * n) > 2**25:
            continue
        a, b, c = (rng.standard_normal((batch, *size), np.float32) for size in ((m, k), (k, n), (m, n)))
        for alpha, beta in ((1.0, 0.0), (-0.5, 2.0)):
            start = c if beta else np.full_like(c, np.nan)
            want = product(row.name, *(place(x, "odd_shifted") for x in (a, b, start)), alpha, beta)
            assert_within(want[0], *oracle(a[0], b[0], start[0], alpha, beta), f"{m} x {n} x {k}")
            for placement in ("aligned", "aligned_padded", "aligned"):
                got = product(row.name, *(place(x, placement) for x in (a, b, start)), alpha, beta)
                assert_same_bits(got, want, f"{m} x {n} x {k}, batch {batch}, {placement}, beta {beta}")


@every_row
def test_nearly_whole_tiles(row, rng):
    """One less in each direction, or an operand stored the other way round: not for the twin."""
    rows_of, cols_of, k_of = FULL_TILES[row.name]
    m, n, k = 2 * rows_of, 2 * cols_of, 3 * k_of
    a, b, c = (rng.standard_normal((1, *size), np.float32) for size in ((m, k), (k, n), (m, n)))
    shapes = ((m - 4, n, k), (m, n - 4, k), (m, n, k - 4), (m, n, k - k_of // 2), (m, n, k))
    for rows_, cols, depth in shapes:
        left, right, start = a[:, :rows_, :depth], b[:, :depth, :cols], c[:, :rows_, :cols]
        for trans_a, trans_b in ((False, False), (True, False), (False, True), (True, True)):
            operands = place(left, "aligned", trans_a), place(right, "aligned", trans_b), place(start, "aligned")
            got = product(row.name, *operands)
            assert_within(got[0], *oracle(left[0], right[0]), f"{rows_} x {cols} x {depth}, {trans_a} {trans_b}")


@every_row
@pytest.mark.parametrize("distance", ["nothing", "four floats", "backwards"])
def test_whole_tiles_of_rows_that_do_not_follow_one_another(row, distance, rng):
    """A broadcast row, rows that overlap, reversed rows: aligned, but not what the copy engine takes."""
    rows_of, cols_of, k_of = FULL_TILES[row.name]
    m, n, k = 2 * rows_of, 2 * cols_of, 2 * k_of
    result = np.full((1, m, n), np.nan, np.float32)

    def strange(rows_, cols):
        """The operand in device memory, and what it holds."""
        if distance == "backwards":
            whole = place(rng.standard_normal((1, rows_, cols), np.float32), "aligned_padded")
            values = np.array(whole.view(whole.host))[:, ::-1]
            last = whole.ptr + 4 * whole.ld * (rows_ - 1)
            return Announced(whole, strides=(0, -4 * whole.ld, 4), data=(last, False)), values
        ld = 0 if distance == "nothing" else 4
        run = place(rng.standard_normal((1, 1, (rows_ - 1) * ld + cols), np.float32), "aligned")
        values = as_strided(run.view(run.host), (1, rows_, cols), (0, 4 * ld, 4)).copy()
        return Announced(run, shape=values.shape, strides=(0, 4 * ld, 4)), values

    (a, a_values), (b, b_values) = strange(m, k), strange(k, n)
    plain_a, plain_b = place(a_values, "odd_shifted"), place(b_values, "odd_shifted")
    want = product(row.name, plain_a, plain_b, place(result, "aligned"))
    for left, right in ((a, plain_b), (plain_a, b), (a, b)):
        got = product(row.name, left, right, place(result, "aligned"))
        assert_same_bits(got, want, f"{m} x {n} x {k}")
    aligned_a, aligned_b = place(a_values, "aligned"), place(b_values, "aligned")
    for left, right in ((a, aligned_b), (aligned_a, b)):
        got = product(row.name, left, right, place(result, "aligned"))
        assert_same_bits(got, want, f"{m} x {n} x {k}, the other one whole")
