"""What beta multiplies, in memory of its own with strides of its own: every GPU row of the SGEMM table by name."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.device_libraries import view
from support.operands import normal
from support.rows import rows, taken

put = fl.DeviceArray.from_numpy
every_gpu_row = pytest.mark.parametrize("row", rows("sgemm", device="cuda"))

# Whole tiles and ragged ones, few of them and k long enough to be split over the grid, one row, one column, a k too
# short for terms, and none.
SHAPES = (
    (256, 384, 512), (129, 131, 300), (70, 1001, 300), (600, 520, 256), (64, 64, 2048), (1, 259, 320), (300, 1, 256),
    (66, 34, 100), (40, 36, 0),
)  # fmt: skip


def whole(values):
    return values


def _view(rng, shape, order):
    """A device array of this shape, and its values: a view of a larger one with another order of its elements."""
    m, n = shape
    stored, select = {
        "row": ((n,), whole),
        "column": ((m, 1), whole),
        "number": ((1, 1), whole),
        "padded by 16 bytes": ((m, n + 4 + -n % 4), lambda x: x[:, :n]),
        "padded by 4 bytes": ((m, n + 1), lambda x: x[:, :n]),
        "transposed": ((n, m), np.transpose),
        "backwards": ((m, n), lambda x: x[::-1, ::-1]),
    }[order]
    values = normal(rng, *stored)
    return view(put(values), select), select(values)


ORDERS = ("row", "column", "number", "padded by 16 bytes", "padded by 4 bytes", "transposed", "backwards")


@every_gpu_row
def test_orders(row, rng):
    for m, n, k in SHAPES:
        a, b = normal(rng, m, k), normal(rng, k, n)
        da, db = put(a), put(b)
        for order in ORDERS:
            addend, values = _view(rng, (m, n), order)
            for alpha, beta in ((1.0, 1.0), (-0.5, 2.0)):
                call = functools.partial(fl.sgemm, da, db, addend, alpha=alpha, beta=beta, kernel=row.name)
                got = taken(row, call, (m, n, k) == SHAPES[0])
                wide = np.broadcast_to(values, (m, n))
                context = f"{(m, n, k)} {order} alpha {alpha} beta {beta}"
                if got is not None:
                    assert_product(got.numpy(), a, b, wide, alpha, beta, context)


@every_gpu_row
def test_results_of_any_order(row, rng):
    """A result that is read by columns turns the product round, and one that no kernel takes is packed."""
    m, n, k = 132, 68, 320
    a, b = normal(rng, m, k), normal(rng, k, n)
    for order in ORDERS:
        addend, values = _view(rng, (m, n), order)
        for stored, select in (((n, m), np.transpose), ((2 * m, 2 * n), lambda x: x[::2, ::2])):
            parent = put(np.full(stored, np.nan, np.float32))
            fl.sgemm(put(a), put(b), addend, beta=-1.5, out=view(parent, select), kernel=row.name)
            wide = np.broadcast_to(values, (m, n))
            assert_product(select(parent.numpy()).copy(), a, b, wide, beta=-1.5, context=f"{order} {stored}")


@every_gpu_row
def test_batches(row, rng):
    """One addend for all problems, one for each, and rows of which there is one for each."""
    batch, m, n, k = 3, 66, 72, 320
    a, b = normal(rng, batch, m, k), normal(rng, batch, k, n)
    for shape in ((n,), (m, n), (batch, m, n), (batch, 1, n), (batch, m, 1)):
        c = normal(rng, *shape)
        got = fl.sgemm(put(a), put(b), put(c), beta=2.0, kernel=row.name).numpy()
        assert_product(got, a, b, np.broadcast_to(c, (batch, m, n)), beta=2.0, context=f"{shape}")


@every_gpu_row
def test_numbers_beyond_the_range_of_terms(row, rng):
    """The fallbacks add it as well: to numbers that no terms hold, and to Inf and NaN."""
    m, n, k = 200, 136, 320
    row_of_c, c = normal(rng, n), normal(rng, m, n)
    for spread in (8, 30):
        a = normal(rng, m, k) * np.float32(10) ** rng.integers(-spread, spread // 4, (m, k)).astype(np.float32)
        b = normal(rng, k, n)
        for addend in (row_of_c, c):
            got = fl.sgemm(put(a), put(b), put(addend), beta=1.0, kernel=row.name).numpy()
            assert_product(got, a, b, np.broadcast_to(addend, (m, n)), beta=1.0, context=f"{spread} {addend.shape}")
    a[3, 5], a[70, 11] = np.inf, np.nan
    got = fl.sgemm(put(a), put(b), put(row_of_c), beta=1.0, kernel=row.name).numpy()
    assert not np.isfinite(got[[3, 70]]).any() and np.isfinite(np.delete(got, [3, 70], 0)).all()


@every_gpu_row
def test_it_is_only_read(row, rng):
    a, b, c = normal(rng, 130, 288), normal(rng, 288, 132), normal(rng, 132)
    addend, none = put(c), put(np.full((130, 132), np.nan, np.float32))
    fl.sgemm(put(a), put(b), addend, beta=3.0, kernel=row.name)
    assert_same_bits(addend.numpy(), c)
    got = fl.sgemm(put(a), put(b), out=none, kernel=row.name).numpy()
    assert_product(got, a, b, context="beta 0")
    got = fl.sgemm(put(a), put(b), addend, alpha=0.0, beta=1.0, kernel=row.name).numpy()
    assert_same_bits(got, np.broadcast_to(c, (130, 132)).copy())


@pytest.mark.gpu
def test_repeated_short_calls(rng):
    """Their graphs are those of the addend that the call has."""
    a, b, out = normal(rng, 24, 24), normal(rng, 24, 24), put(np.zeros((24, 24), np.float32))
    da, db, rows_of_c = put(a), put(b), [normal(rng, 24) for _ in range(3)]
    for c, addend in [(c, put(c)) for c in rows_of_c]:
        for _ in range(10):
            fl.sgemm(da, db, addend, beta=1.0, out=out)
            assert_product(out.numpy(), a, b, np.broadcast_to(c, (24, 24)), beta=1.0)
