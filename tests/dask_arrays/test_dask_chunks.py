"""Sizes that are suggested, how sums are cut, and how many arrays of partial sums are in memory at once."""

from __future__ import annotations

import threading
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.dask_arrays import ReadBySlices, da, fld

graph, accumulate = fld._graph, fld._tasks.accumulate
SIZE = st.integers(0, 3_000_000)


@pytest.mark.filterwarnings("ignore:suggest_chunks")
@given(m=SIZE, n=SIZE, k=SIZE, memory=st.integers(2**20, 2**38), workers=st.integers(1, 64), threads=st.integers(1, 8))
def test_a_task_fits_in_its_memory(m, n, k, memory, workers, threads):
    (rows, depth), (depth_b, columns), c = fld.suggest_chunks(m, n, k, memory=memory, workers=workers, threads=threads)
    assert depth == depth_b and c == (rows, columns)
    assert all(1 <= size <= max(whole, 1) for size, whole in ((rows, m), (columns, n), (depth, k)))
    assert 4 * (rows * depth + depth * columns + 2 * rows * columns) <= memory / 2 / threads


def test_many_workers_get_smaller_chunks():
    few, many = (fld.suggest_chunks(40_000, 40_000, 40_000, memory="64 GiB", workers=w) for w in (1, 32))
    outputs = (-(-40_000 // many.c[0])) * (-(-40_000 // many.c[1]))
    assert few.c[0] > many.c[0] and outputs >= 64
    uneven = fld.suggest_chunks(7000, 2000, 9000, memory="64 GiB", workers=4, threads=1)  # chunks at the ends count
    assert uneven == ((1750, 1800), (1800, 1000), (1750, 1000))


def test_a_string_and_a_number_of_bytes():
    assert fld.suggest_chunks(9000, 8000, 7000, memory="1 GiB") == fld.suggest_chunks(9000, 8000, 7000, memory=2**30)
    assert fld.suggest_chunks(3, 2, 5) == ((3, 5), (5, 2), (3, 2))


def test_so_little_memory_that_the_scheduler_drowns_is_said():
    with pytest.warns(UserWarning, match="524288 bytes for a task make 169112377 products .* more memory"):
        fld.suggest_chunks(100_000, 100_000, 100_000, memory="1 MiB", workers=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fld.suggest_chunks(100_000, 100_000, 100_000, memory="1 GiB", workers=2)


def test_a_chain_is_cut_where_partial_sums_are_small():
    square, tall = da.ones((40, 40), dtype="f4", chunks=4), da.ones((4000, 4), dtype="f4", chunks=(10, 4))
    assert not any("sum" in str(key) for key in fld.matmul(square, square).dask)
    gram = fld.matmul(tall.T, tall).dask
    assert 16 <= sum("sum" in key[0] and key[-2] == 0 for key in gram if isinstance(key, tuple)) <= 128


def test_chunks_of_both_axes_by_name_and_of_a_vector():
    a, b = ReadBySlices(np.ones((60, 30), "f4")), ReadBySlices(np.ones((30, 40), "f4"))
    assert fld.matmul(a, b, chunks={0: 20, 1: 10}).chunks == ((20,) * 3, (10,) * 4)
    suggested = fld.suggest_chunks(5000, 1, 9000, memory="1 MiB", workers=1, threads=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastlinalg.dask._cuts.suggest_chunks", lambda m, n, k: suggested if n == 1 else None)
        product = fld.matvec(ReadBySlices(np.ones((5000, 9000), "f4")), np.ones(9000, "f4"))
    assert product.chunks[0][0] == suggested.c[0]


def test_a_link_has_no_more_inputs_than_fit_in_the_result():
    """And one pair at least: all inputs of a task are in memory before it begins."""
    for columns, tasks in ((20, 10), (2, 20), (8, 25)):
        a = da.ones((20, 200), dtype="f4", chunks=(20, columns))
        product = fld.matmul(a, a.T)
        assert len(product.dask.layers[product.name]) == tasks


class Counted:
    """Counts the arrays of sums that are alive."""

    def __init__(self):
        self.now = self.most = 0
        self.lock = threading.Lock()

    def __call__(self, call, c, a_chunks, b_chunks):
        result = accumulate(call, c, a_chunks, b_chunks)
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        weakref.finalize(result, self.gone)
        return result

    def gone(self):
        with self.lock:
            self.now -= 1


class Discard:
    """Takes the chunks of a result, so that nobody else keeps them."""

    def __setitem__(self, index, values):
        assert (values == self.want).all()


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
@pytest.mark.parametrize(("rows", "depth", "most"), [(1, 24, 2), (3, 8, 3 * 3 + 2)])
def test_partial_products_are_not_kept(rows, depth, most, scheduler, monkeypatch):
    """As many sums as the result has chunks at most, and the new one of each task: not one for each pair of chunks."""
    counted, target = Counted(), Discard()
    monkeypatch.setattr(graph, "accumulate", counted)
    target.want = 20 * depth
    a = da.ones((20 * rows, 20 * depth), dtype="f4", chunks=20)
    da.store(fld.matmul(a, a.T, split_k=1), target, scheduler=scheduler, num_workers=2, lock=False)
    assert counted.now == 0 and counted.most <= most


def test_inputs_of_a_link_stay_as_they_are(rng):
    """Dask may run a link again, or have copied its inputs to another worker."""
    call = graph.Call("sgemm", {"alpha": 1.0})
    c, a, b = (rng.standard_normal((8, 8), dtype=np.float32) for _ in range(3))
    before = c.copy()
    first = accumulate(call, c, [a, a], [b, b])
    assert (c == before).all() and (accumulate(call, c, [a, a], [b, b]) == first).all()
    parts = [c.copy(), a.copy(), b.copy()]
    graph.add(parts)
    assert all((x == y).all() for x, y in zip(parts, (c, a, b), strict=True))
