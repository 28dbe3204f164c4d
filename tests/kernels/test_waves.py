"""Persistent GPU kernels whose last wave of tiles is not full: its tiles are shared out, some over two blocks."""

from __future__ import annotations

import numpy as np
import pytest

from support.accuracy import assert_same_bits
from support.device import place, product
from support.rows import PERSISTENT, rows

pytestmark = pytest.mark.gpu
LADDER = "smem"
# m, n, k, batch: 1.3 to 8 waves of 132 tiles and no cut of k, with edges in all three, and from 3 to 65 steps along k
SHAPES = (
    (2200, 3100, 1000, 1),
    (2304, 3072, 1024, 1),
    (1500, 1111, 515, 4),
    (2309, 2333, 129, 1),
    (4096, 4097, 96, 1),
    (300, 260, 2050, 47),
)
every_row = pytest.mark.parametrize("row", rows("sgemm", names=PERSISTENT))
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))


@every_shape
@every_row
def test_one_chain_of_additions_for_every_output(row, shape, rng):
    """Bit for bit the ladder's, with beta and without, and the same bits again from a workspace that has been used."""
    m, n, k, batch = shape
    values = [rng.standard_normal((batch, *size), np.float32) for size in ((m, k), (k, n), (m, n))]
    for placement, transposed in (("aligned", False), ("odd_shifted", True)):
        a, b = (place(operand, placement, transposed) for operand in values[:2])
        for alpha, beta in ((1.0, 0.0), (-0.5, 2.0)):
            start = values[2] if beta else np.full_like(values[2], np.nan)
            want = product(LADDER, a, b, place(start, placement), alpha, beta)
            for attempt in range(3):
                got = product(row.name, a, b, place(start, placement), alpha, beta)
                assert_same_bits(got, want, f"{placement}, beta {beta}, attempt {attempt}")
