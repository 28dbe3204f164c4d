"""Every row on a matrix whose rows lie 4 GiB apart, in a sparse file: offsets in 32 bits would not reach them."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.rows import rows

LD = 2**32 + 64  # bytes from row to row: the third row is more than 2^31 elements away
SHAPE = (3, 8)


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """A writable matrix of SHAPE with that row stride."""
    try:
        with open(tmp_path_factory.mktemp("far") / "sparse", "wb+") as file:
            file.truncate(2 * LD + 4096)
            memory = np.memmap(file, np.uint8, "r+")
    except (OSError, ValueError) as error:
        pytest.skip(f"no sparse file of 8 GiB here: {error}")
    return np.ndarray(SHAPE, np.float32, memory.data, 0, (LD, 4))


@pytest.mark.parametrize("row", rows("sgemm"))
def test_sgemm(row, far, rng):
    m, k = SHAPE
    values, b = rng.standard_normal(SHAPE, np.float32), rng.standard_normal((k, 5), np.float32)
    sgemm = functools.partial(fl.sgemm, kernel=row.name)
    far[...] = values
    assert_product(sgemm(far, b), values, b, context="a")
    assert_product(sgemm(far, b[:m], trans_a=True), values.T, b[:m], context="a, transposed")
    assert_product(sgemm(b.T, far, trans_b=True), b.T, values.T, context="b, transposed")
    assert_product(sgemm(b[:m].T, far), b[:m].T, values, context="b")
    assert_product(sgemm(far[:, None], b), values[:, None], b, context="a batch")
    left, right = rng.standard_normal((m, 4), np.float32), rng.standard_normal((4, k), np.float32)
    assert_product(sgemm(left, right, far, beta=2.0, out=far), left, right, values, beta=2.0, context="out")
    far[...] = np.nan
    got = sgemm(right.T, left.T, out=far.T)
    assert_product(got, right.T, left.T, context="out, transposed")


@pytest.mark.parametrize("row", rows("sgemv"))
def test_sgemv(row, far, rng):
    values, x = rng.standard_normal(SHAPE, np.float32), rng.standard_normal(8, np.float32)
    far[...] = values
    for trans, a in ((False, values), (True, values.T)):
        y = x[: a.shape[1]]
        got = fl.sgemv(far, y, trans=trans, kernel=row.name)
        assert_product(got[:, None], a, y[:, None], context=f"trans {trans}")
    column = far[:, 2]
    assert_product(fl.sgemv(values.T, column, kernel=row.name)[:, None], values.T, values[:, 2:3], context="x")
    far[...] = np.nan
    got = fl.sgemv(values, x, out=column, kernel=row.name)
    assert_product(got[:, None], values, x[:, None], context="out")


@pytest.mark.parametrize("row", rows("transpose"))
def test_transpose(row, far, rng):
    values = rng.standard_normal(SHAPE, np.float32)
    far[...] = values
    assert_same_bits(fl.transpose(far, kernel=row.name), values.T, "source")
    far[...] = np.nan
    assert_same_bits(fl.transpose(np.ascontiguousarray(values.T), out=far, kernel=row.name), values, "result")
