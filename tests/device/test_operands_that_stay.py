"""Operands in device memory whose splits stay from call to call (support/weights.py)."""

from __future__ import annotations

import gc
from itertools import product as pairs

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits, assert_within, oracle
from support.device import assign
from support.operands import normal
from support.rows import rows
from support.threads import in_threads
from support.weights import Named, product

F32 = np.float32
MOST_LINES_APART = 704  # products of no more rows and columns have terms of their own in fp16x2
N, K = 720, 256  # of less k nothing is kept
put = fl.DeviceArray.from_numpy
pytestmark = pytest.mark.gpu
SHAPES = [(256, 256, 256), (400, 130, 300), (700, 520, 1030), (900, 1000, 256), (321, 700, 1500)]


@pytest.mark.parametrize("row", rows("sgemm", "cuda", strict=False))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_bits_are_those_of_a_call(row, shape, rng):
    """One split serves products of any number of rows, and of other tiles."""
    m, n, k = shape
    a, b = normal(rng, m, k), put(normal(rng, k, n))
    named = Named(b)
    for some in (m, m // 2 + 1, 33, m):
        x = put(a[:some])
        want = fl.sgemm(x, b, kernel=row.name).numpy()
        for _ in range(3):
            assert_same_bits(product(named, x, b, row.name), want)
    assert named.nbytes <= 8 * (k + 64) * (n + 256)  # whole tiles of at most three terms
    assert named.nbytes > 0 or max(m, n) <= MOST_LINES_APART


def test_either_side_transposed_and_in_column_order(rng):
    n = 720
    other = normal(rng, n, n)
    y = put(other)
    b = put(other)
    named = Named(b)
    for turn in range(2):
        host = normal(rng, n, n)
        assign(b, host)
        named.stamps[0] += turn
        for trans, trans_other in pairs((False, True), repeat=2):
            left, right = host.T if trans else host, other.T if trans_other else other
            wants = oracle(left, right), oracle(right, left)
            for column_order in (False, True):
                flags = {"trans_a": trans, "trans_b": trans_other, "column_order": column_order}
                assert_within(product(named, b, y, **flags), *wants[0])
                flags = {"trans_a": trans_other, "trans_b": trans, "column_order": column_order}
                assert_within(product(named, y, b, **flags), *wants[1])
    assert_product(product(named, b, b), host, host)  # a weight times itself


def test_the_stamp_says_when_it_changes(rng):
    """Until then the old values count, which is how this test knows that they are kept."""
    a, host = normal(rng, N, K), normal(rng, K, N)
    x, b = put(a), put(host)
    named = Named(b)
    for _ in range(3):
        assert_product(product(named, x, b), a, host)
        assert_product(product(named, x, b), a, host)
        assert named.nbytes > 0
        new = normal(rng, K, N)
        assign(b, new)
        assert_product(product(named, x, b), a, host)
        named.stamps[0] += 1
        host = new
        assert_product(product(named, x, b), a, host)
        assert named.nbytes == 0


def test_memory(rng):
    arrays = [put(normal(rng, K, N)) for _ in range(4)]
    x = put(normal(rng, N, K))
    wants = [fl.sgemm(x, y, kernel="fp16x2").numpy() for y in arrays]
    fl.cuda.trim()
    gc.collect()
    before = fl.cuda.memory_info()
    assert before["splits"] == 0

    def use(named, times=2):
        for y, want in list(zip(arrays, wants, strict=True)) * times:
            assert_same_bits(product(named, x, y), want)
            info = fl.cuda.memory_info()
            assert info["splits"] == named.nbytes == info["used"] - before["used"]

    named = Named(*arrays)
    use(named, 3)
    one = named.nbytes // len(arrays)
    assert 4 * K * N <= one <= 8 * (K + 64) * (N + 256)
    fl.cuda.trim()
    assert named.nbytes == fl.cuda.memory_info()["splits"] == 0
    use(named)
    del named
    gc.collect()
    assert fl.cuda.memory_info()["used"] == before["used"]
    for limit, count in ((0, 0), (one - 1, 0), (one, 1), (3 * one + 5, 3)):
        named = Named(*arrays, limit=limit)
        use(named, 4)
        assert named.nbytes == count * one
        del named
        gc.collect()


def test_the_least_recently_used_goes_first(rng):
    arrays = [put(normal(rng, K, N)) for _ in range(3)]
    hosts = [y.numpy() for y in arrays]
    left = normal(rng, N, K)  # not the identity: beside its zeros two terms may be rejected, and what is there counts
    x = put(left)
    named = Named(arrays[0])
    for _ in range(2):
        product(named, x, arrays[0])
    named = Named(*arrays, limit=2 * named.nbytes)
    for i in (0, 0, 1, 1, 0, 2, 2):
        product(named, x, arrays[i])
    for y in arrays:
        assign(y, np.zeros((K, N), F32))
    for i, is_kept in ((0, True), (2, True), (1, False)):
        found = product(named, x, arrays[i])
        assert_product(found, left, hosts[i] if is_kept else np.zeros((K, N), F32))


def test_what_is_kept_makes_room_for_calls(rng, limit):
    """It only saves time."""
    n = 720
    x, y, z = (put(normal(rng, n, n)) for _ in range(3))
    out = put(normal(rng, n, n))
    want = fl.sgemm(x, y, kernel="fp16x2").numpy()
    fl.cuda.trim()
    named = Named(y, z)
    used = fl.cuda.memory_info()["used"]
    for _ in range(2):
        product(named, x, y), product(named, x, z)
    split = named.nbytes // 2
    with fl.Matmul(x, y) as plan:
        assert plan.kernel == "fp16x2"
        workspace = plan.workspace_bytes
    for room in (workspace, workspace + split // 2, workspace + split, workspace + 2 * split):
        fl.cuda.set_memory_limit(used + 4 * n * n + room)
        for _ in range(3):
            assert_same_bits(product(named, x, y), want)
            fl.sgemm(x, z, kernel="fp16x2", out=out)
            product(named, x, z)
    limit(used + 4 * n * n)
    assert_product(fl.matmul(x, y).numpy(), x.numpy(), y.numpy())  # strict: there is no room for a workspace


def test_threads(rng):
    arrays = [put(normal(rng, K, N)) for _ in range(5)]
    x = normal(rng, N, K)
    wants = [oracle(x, y.numpy()) for y in arrays]
    named = Named(*arrays, limit=3 * 5 * K * N)

    def work(seed):
        mine, own = put(x), np.random.default_rng(seed)
        for _ in range(12):
            i = own.integers(len(arrays))
            assert_within(product(named, mine, arrays[i]), *wants[i])
            if own.integers(4) == 0:
                named.stamps[own.integers(len(arrays))] += 1  # nothing has changed, which nobody needs to know
            if own.integers(8) == 0:
                fl.cuda.trim()

    in_threads(work, range(4))
