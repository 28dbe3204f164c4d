"""Every row of the transpose table, by name: a copy, so every bit pattern has to arrive."""

from __future__ import annotations

import functools
from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_same_bits
from support.layouts import BROADCAST_LAYOUTS, MATRIX_LAYOUTS, contiguous_like_blas, matrix_input, result
from support.rows import attempt, rows
from support.shapes import TRANSPOSE, TRANSPOSE_FEW

every_row = pytest.mark.parametrize("row", rows("transpose"))


@functools.cache
def numbered(*shape):
    """Every element another bit pattern, so that a misplaced one cannot hide; NaN and infinities are among them."""
    count = int(np.prod(shape))
    return (np.arange(count, dtype=np.uint32) * np.uint32(2654435761)).view(np.float32).reshape(shape)


@every_row
def test_shapes(row):
    for shape in TRANSPOSE:
        a = numbered(*shape)
        got = fl.transpose(a, kernel=row.name)
        assert got.flags.c_contiguous
        assert_same_bits(got, a.T, f"{shape}")


@every_row
def test_narrow_matrices(row):
    """Every width, beside sides of a few strips and of many, whose rows start on sectors and do not."""
    for width in (2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 17):
        for length in (31, 33, 160, 1027, 2**20 // width + 5, -(-(2**20) // width // 8) * 8):
            for shape in ((length, width), (width, length)):
                assert_same_bits(fl.transpose(numbered(*shape), kernel=row.name), numbered(*shape).T, f"{shape}")
    for shape in ((2**18 + 3, 5), (5, 2**18 + 3), (2**17 + 1, 16)):
        out = result(shape[::-1], "padded_rows")
        fl.transpose(matrix_input(numbered(*shape), "padded_rows"), out=out.array, kernel=row.name)
        out.assert_intact(f"{shape}")
        assert_same_bits(out.array, numbered(*shape).T, f"{shape}")


@every_row
def test_layouts(row):
    inputs, outputs = (*MATRIX_LAYOUTS, *BROADCAST_LAYOUTS), tuple(MATRIX_LAYOUTS)
    for (m, n), a_layout, out_layout in product(((13, 17), (33, 64), (1, 6), (6, 1), (1, 1)), inputs, outputs):
        a, out = matrix_input(numbered(m, n), a_layout), result((n, m), out_layout)
        context = f"{(m, n)} a {a_layout}, out {out_layout}"
        must = a_layout in ("C", "shifted") and out_layout in ("C", "shifted") and contiguous_like_blas(a_layout)
        got = attempt(row, functools.partial(fl.transpose, a, out=out.array, kernel=row.name), must and 1 not in (m, n))
        out.assert_intact(context)
        if got is not None:
            assert got is out.array
            assert_same_bits(got, np.array(a).T, context)


@every_row
def test_nothing_beside_the_result_is_written(row):
    for shape in TRANSPOSE_FEW:
        for layout in ("C", "padded_rows"):
            out = result(shape[::-1], layout)
            fl.transpose(matrix_input(numbered(*shape), "padded_rows"), out=out.array, kernel=row.name)
            out.assert_intact(f"{shape} {layout}")
            assert_same_bits(out.array, numbered(*shape).T, f"{shape} {layout}")


@every_row
def test_batches(row):
    for lead, shape in product(((3,), (2, 3), (0,), (1, 2, 1), (2, 0)), TRANSPOSE_FEW):
        a = numbered(*lead, *shape)
        assert_same_bits(fl.transpose(a, kernel=row.name), a.swapaxes(-1, -2), f"{lead} of {shape}")


@every_row
def test_batch_layouts(row):
    stack = numbered(3, 4, 9, 10)
    for a in (stack.swapaxes(0, 1), stack[::-1], stack[:, ::2], np.broadcast_to(stack[:1], stack.shape)):
        assert_same_bits(fl.transpose(a, kernel=row.name), a.swapaxes(-1, -2))


@every_row
def test_more_batches_than_a_grid_axis_has_blocks(row):
    a = numbered(70001, 2, 3)
    assert_same_bits(fl.transpose(a, kernel=row.name), a.swapaxes(-1, -2))


@every_row
def test_more_rows_than_a_grid_axis_has_blocks(row):
    for shape in ((65535 * 32 + 5, 2), (2, 65535 * 32 + 5), (65535 * 8 + 1, 8)):
        a = numbered(*shape)
        assert_same_bits(fl.transpose(a, kernel=row.name), a.T, f"{shape}")


@every_row
def test_larger_than_the_caches(row):
    """Large results may be written past the caches: edges, odd alignments, and a column-major source."""
    m, n = 2053, 2111
    a = numbered(m, n)
    for source in (a, np.asfortranarray(a)):
        for layout in ("C", "shifted", "padded_rows", "F"):
            out = result((n, m), layout)
            if (
                attempt(row, functools.partial(fl.transpose, source, out=out.array, kernel=row.name), layout == "C")
                is not None
            ):
                assert_same_bits(out.array, a.T, layout)
            out.assert_intact(layout)


@every_row
def test_blocks_of_large_results_meet_at_lines(row):
    """Past the caches a block writes whole lines, those it shares with its neighbour included: none is left out."""
    for shape in ((3, 1025, 1031), (5, 511, 1040), (8195, 257), (2305, 1000), (2319, 1001), (300007, 13), (90001, 41)):
        a = numbered(*shape)
        for layout in ("C", "shifted", "padded_rows"):
            out = result((*shape[:-2], *shape[:-3:-1]), layout)
            fl.transpose(a, out=out.array, kernel=row.name)
            assert_same_bits(out.array, a.swapaxes(-1, -2), f"{shape} {layout}")
            out.assert_intact(f"{shape} {layout}")


@every_row
def test_signalling_nan_payloads_survive(row):
    payloads = np.array([0x7F800001, 0xFFBFFFFF, 0x7FC0DEAD, 0x00000001, 0x80000000, 0x807FFFFF], np.uint32).view(
        np.float32
    )
    a = np.resize(payloads, (37, 41))
    assert_same_bits(fl.transpose(a, kernel=row.name), a.T)


BEYOND_CACHES = (
    test_shapes, test_narrow_matrices, test_layouts, test_nothing_beside_the_result_is_written, test_batches,
    test_blocks_of_large_results_meet_at_lines,
)  # fmt: skip


@pytest.mark.parametrize("row", rows("transpose", "cpu"))
def test_beyond_a_part_of_a_large_cache(row, request):
    request.addfinalizer(_core.testing.assume_machine)
    _core.testing.assume_machine(last_level_cache=300 << 20)
    for shape in ((3001, 2899), (1201, 1103), (200, 5001), (70001, 13)):  # from 64 MiB on the next block is fetched
        a = numbered(*shape)
        assert_same_bits(fl.transpose(a, kernel=row.name), a.T, f"{shape}")


@pytest.mark.parametrize("check", BEYOND_CACHES)
@pytest.mark.parametrize("row", rows("transpose", "cpu"))
def test_beyond_small_caches(row, check, request):
    """Where the last level holds hundreds of MiB, few results here are written past it."""
    request.addfinalizer(_core.testing.assume_machine)
    _core.testing.assume_machine(last_level_cache=1 << 16)
    check(row)
