"""GPU operands of more than 2^31 elements, checked on sampled rows: every index has to be 64 bits wide."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_same_bits, assert_within, oracle
from support.device import Strided
from support.rows import best_precision, rows, taken

pytestmark = [pytest.mark.gpu, pytest.mark.huge, pytest.mark.xdist_group("machine")]
SIDE = 46344  # SIDE * SIDE is just above 2^31, and a multiple of four for the vector kernels
SAMPLED = (0, 1, SIDE // 2, 46340, SIDE - 1)
THIN = 8
put = fl.DeviceArray.from_numpy
ALL = SIDE * SIDE  # of a matrix with one row or one column
PLACES = (0, 1, 2**31 - 1, 2**31, 2**31 + 5, ALL - 2, ALL - 1)


class HugeMatrix:
    """A SIDE x SIDE matrix whose every row is known: row i is a pattern, rotated by i."""

    def __init__(self):
        self.pattern = np.random.default_rng(1).standard_normal(SIDE, np.float32)
        self.buffer = _core.DeviceBuffer(4 * SIDE * SIDE)
        self.array = Strided(self.buffer.ptr, (SIDE, SIDE))
        twice, step = np.concatenate([self.pattern, self.pattern]), 512
        windows = np.lib.stride_tricks.sliding_window_view(twice, SIDE)
        for first in range(0, SIDE, step):
            block = np.ascontiguousarray(windows[first : min(first + step, SIDE)])
            self.buffer.upload(block, 4 * SIDE * first)

    def rows(self, index):
        return np.stack([np.roll(self.pattern, -i) for i in index])

    def columns(self, index):
        return np.stack([self.pattern[(np.arange(SIDE) + j) % SIDE] for j in index], 1)

    def view(self, shape, strides):
        return Strided(self.buffer.ptr, shape, strides)

    def at(self, places):
        """As one row."""
        return np.array([self.pattern[(place // SIDE + place % SIDE) % SIDE] for place in places])


@pytest.fixture(scope="module")
def huge():
    matrix = HugeMatrix()
    yield matrix
    del matrix.buffer
    fl.cuda.trim()


@pytest.fixture(scope="module")
def target():
    buffer = _core.DeviceBuffer(4 * SIDE * SIDE)
    yield buffer
    del buffer
    fl.cuda.trim()


def downloaded(buffer, shape, offset=0):
    values = np.empty(shape, np.float32)
    buffer.download(values, offset)
    return values


def numbers_at(buffer):
    return np.concatenate([downloaded(buffer, 1, 4 * place) for place in PLACES])


def forget(buffer):
    for place in PLACES:
        buffer.upload(np.full(1, np.nan, np.float32), 4 * place)


@pytest.mark.parametrize("row", rows("sgemm", "cuda"))
def test_huge_a(row, huge, rng):
    b, out = rng.standard_normal((SIDE, THIN), np.float32), put(np.empty((SIDE, THIN), np.float32))
    for trans in (False, True):
        fl.sgemm(huge.array, put(b), trans_a=trans, out=out, kernel=row.name, precision=best_precision(row))
        got = out.numpy()[list(SAMPLED)]
        a = huge.columns(SAMPLED).T if trans else huge.rows(SAMPLED)
        assert_within(got, *oracle(a, b), f"trans {trans}")


@pytest.mark.parametrize("row", rows("sgemm", "cuda"))
def test_huge_b(row, huge, rng):
    a, out = rng.standard_normal((THIN, SIDE), np.float32), put(np.empty((THIN, SIDE), np.float32))
    for trans in (False, True):
        fl.sgemm(put(a), huge.array, trans_b=trans, out=out, kernel=row.name, precision=best_precision(row))
        got = out.numpy()[:, list(SAMPLED)]
        b = huge.rows(SAMPLED).T if trans else huge.columns(SAMPLED)
        assert_within(got, *oracle(a, b), f"trans {trans}")


@pytest.mark.parametrize("row", rows("sgemm", "cuda"))
def test_huge_c(row, target, rng):
    a, b = rng.standard_normal((SIDE, THIN), np.float32), rng.standard_normal((THIN, SIDE), np.float32)
    out = Strided(target.ptr, (SIDE, SIDE))
    fl.sgemm(put(a), put(b), out=out, kernel=row.name, precision=best_precision(row))
    for i in SAMPLED:
        assert_within(downloaded(target, (1, SIDE), 4 * SIDE * i), *oracle(a[i : i + 1], b), f"row {i}")


@pytest.mark.parametrize("row", rows("sgemv", "cuda"))
def test_huge_sgemv(row, huge, rng):
    x, out = rng.standard_normal(SIDE, np.float32), put(np.empty(SIDE, np.float32))
    for trans in (False, True):
        fl.sgemv(huge.array, put(x), trans=trans, out=out, kernel=row.name)
        a = huge.columns(SAMPLED).T if trans else huge.rows(SAMPLED)
        assert_within(out.numpy()[list(SAMPLED)], *oracle(a, x), f"trans {trans}")


@pytest.mark.parametrize("row", rows("sgemm", names=("naive", "coalesced", "smem", "warp_tiles", "strict_element")))
@pytest.mark.parametrize("side", ["rows", "columns"])
def test_more_rows_or_columns_than_32_bits_count(row, side, huge, target):
    """Of one number each, times one number. Rows with larger tiles take seconds for so many."""
    scale, shape = put(np.array([[0.5]], np.float32)), (ALL, 1) if side == "rows" else (1, ALL)
    all_of_it, out = huge.view(shape, None), Strided(target.ptr, shape)
    operands = (all_of_it, scale) if side == "rows" else (scale, all_of_it)
    forget(target)
    if taken(row, lambda: fl.sgemm(*operands, out=out, kernel=row.name, precision="strict")):
        assert_same_bits(numbers_at(target), 0.5 * huge.at(PLACES))


@pytest.mark.parametrize("row", rows("sgemv", "cuda"))
def test_more_outputs_than_32_bits_count(row, huge, target):
    """Of two columns that begin four numbers apart, the second of which counts nothing."""
    x, m = put(np.array([0.5, 0.0], np.float32)), ALL - 4
    forget(target)
    a, out = huge.view((m, 2), (1, 4)), Strided(target.ptr, (m,))
    if taken(row, lambda: fl.sgemv(a, x, out=out, kernel=row.name)):
        there = [place for place in PLACES if place < m]
        assert_same_bits(numbers_at(target)[: len(there)], 0.5 * huge.at(there))


@pytest.mark.parametrize("kernel", ["long_rows", None])
def test_a_sum_of_more_numbers_than_32_bits_count(kernel, huge, target):
    """All numbers of x but some are 0: none of these may be lost. Behind the last four are up to three."""
    fl.sgemv(huge.view((ALL, 1), None), put(np.zeros(1, np.float32)), alpha=0.0, out=Strided(target.ptr, (ALL,)))
    for place in PLACES:
        target.upload(np.ones(1, np.float32), 4 * place)
    for n in (ALL, ALL - 1, ALL - 2, ALL - 3):
        out = put(np.empty(1, np.float32))
        fl.sgemv(huge.view((1, n), (ALL, 1)), Strided(target.ptr, (n,)), out=out, kernel=kernel)
        there = huge.at([place for place in PLACES if place < n])
        assert_within(out.numpy(), *oracle(there[None], np.ones_like(there)), f"{n} numbers")


@pytest.mark.parametrize("row", rows("transpose", "cuda"))
def test_huge_transpose(row, huge, target):
    fl.transpose(huge.array, Strided(target.ptr, (SIDE, SIDE)), kernel=row.name)
    for j in SAMPLED:
        assert_same_bits(downloaded(target, SIDE, 4 * SIDE * j), huge.columns([j])[:, 0], f"row {j} of the result")
