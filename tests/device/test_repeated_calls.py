"""Calls on the same operands again and again, which start a recorded graph: each has to be what a first call is."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.device_libraries import ENOUGH, Own, captured_while
from support.operands import normal
from support.rows import best_precision, rows
from support.threads import in_threads

pytestmark = pytest.mark.gpu
F32 = np.float32
LARGE = ("128x256", "192x192", "128x128")
LARGE_TILES = [row for row in rows("sgemm", "cuda") if row.values[0].name.endswith(LARGE)]


def calls(a, b, c, out):
    """Every operation, and those that differ in one argument alone, on the same memory."""
    yield lambda: fl.matmul(a, b, out)
    yield lambda: fl.matmul(b, a, out)
    yield lambda: fl.sgemm(a, b, alpha=2.0, out=out)
    yield lambda: fl.sgemm(a, b, alpha=-0.5, out=out)
    yield lambda: fl.sgemm(a, b, c, beta=0.5, out=out)
    yield lambda: fl.sgemm(a, b, trans_a=True, out=out)
    yield lambda: fl.matmul(a, b, out, precision="strict")
    yield lambda: fl.sgemm(a, b, kernel="naive", out=out)
    yield lambda: fl.transpose(a, out)
    yield lambda: fl.transpose(a, out, kernel="naive")


def test_values_are_read_at_each_call(producer, rng):
    hosts = [[normal(rng, 40, 40) for _ in range(3)] for _ in range(ENOUGH)]
    a, b, c, out = (producer.put(np.zeros((40, 40), F32)) for _ in range(4))
    turns = list(calls(a, b, c, out))
    for host in hosts:
        for to, values in zip((a, b, c), host, strict=True):
            fl.transpose(producer.put(values.T.copy()), out=to)
        first = [producer.put(values) for values in host]
        for i, (call, fresh) in enumerate(zip(turns, calls(*first, None), strict=True)):
            assert call() is out
            assert_same_bits(producer.get(out), producer.get(fresh()), f"call {i}")


def test_each_call_in_a_row_of_its_own(producer, rng):
    host = [normal(rng, 24, 24) for _ in range(3)]
    a, b, c, out = (producer.put(values) for values in (*host, host[0]))
    for call, fresh in zip(calls(a, b, c, out), calls(a, b, c, None), strict=True):
        want = producer.get(fresh())
        for _ in range(ENOUGH):
            fl.transpose(c, out=out)
            call()
        assert_same_bits(producer.get(out), want)


def test_other_arrays_in_the_same_memory(rng):
    """What has been recorded of an array that has gone is no longer meant by its address."""
    for n in (32, 24, 31, 32):
        for _ in range(2 * ENOUGH):
            a, b = normal(rng, n, n), normal(rng, n, n)
            x, y, out = Own().put(a), Own().put(b), Own().put(a)
            fl.matmul(x, y, out)
            assert_product(out.numpy(), a, b)
            del x, y, out


def test_trim_gives_the_graphs_back(rng):
    a, b = normal(rng, 32, 32), normal(rng, 32, 32)
    x, y, out = Own().put(a), Own().put(b), Own().put(a)
    for _ in range(3):
        for _ in range(ENOUGH):
            fl.matmul(x, y, out)
        fl.cuda.trim()
        assert_product(out.numpy(), a, b)


def test_many_strict_calls_on_host_arrays(rng):
    """The copies of the host delay what kernels fetch: a fault in their pipelines showed once in 5 to 458 calls."""
    a, b = normal(rng, 4096, 4096), normal(rng, 4096, 4096)
    want = fl.matmul(a, b, precision="strict", device="cuda")
    out = np.empty_like(want)
    for call in range(1000):
        fl.matmul(a, b, out, precision="strict", device="cuda")
        if call % 16 == 0:
            assert_same_bits(out, want, f"call {call}")


@pytest.mark.parametrize("row", LARGE_TILES)
def test_many_products_of_many_tiles(row, rng):
    """A stage that is written before all warps have read it: once wrong in 2 to 40 calls of this size."""
    n, k = 12288, 1024
    a, b, ones = (Own().put(x) for x in (normal(rng, n, k), normal(rng, k, n), np.ones((1, n), F32)))
    options = {"kernel": row.name, "precision": best_precision(row)}
    out = fl.sgemm(a, b, **options)
    sums = fl.sgemm(ones, out, precision="strict")
    want = sums.numpy()
    for call in range(150):
        fl.sgemm(a, b, out=out, **options)
        fl.sgemm(ones, out, out=sums, precision="strict")
        assert_same_bits(sums.numpy(), want, f"the sums of the columns, call {call}")


def test_threads_repeat_the_same_call(rng):
    a, b = normal(rng, 32, 32), normal(rng, 32, 32)
    x, y, shared = Own().put(a), Own().put(b), Own().put(a)
    want = fl.matmul(x, y).numpy()

    def work(_):
        mine = Own().put(a)
        for _ in range(200):
            fl.matmul(x, y, shared)
            fl.matmul(x, y, mine)
        assert_same_bits(mine.numpy(), want)

    in_threads(work, range(8))
    assert_same_bits(shared.numpy(), want)


# ---------------------------------------------------------------- streams and captures of torch
def test_a_repeated_call_is_captured_and_goes_on(torch, rng):
    host = normal(rng, 48, 48)
    a, b = torch.from_numpy(host).cuda(), torch.from_numpy(host).cuda()
    out, want = torch.empty_like(a), torch.empty_like(a)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(ENOUGH):
            fl.matmul(a, b, out)
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        fl.matmul(a, b, out)
        graph.capture_end()
        for value in (2.0, 3.0):
            a.fill_(value)
            fl.matmul(a, b, want)
            out.zero_()
            graph.replay()
            assert torch.equal(out, want)
            out.zero_()
            fl.matmul(a, b, out)
            assert torch.equal(out, want)
    torch.cuda.synchronize()


def test_a_call_is_recorded_while_another_thread_captures(torch, rng):
    a = torch.from_numpy(normal(rng, 64, 64)).cuda()
    b = torch.zeros_like(a)
    x, y = Own().put(a.cpu().numpy()), Own().put(np.zeros((64, 64), F32))

    def work():
        for _ in range(ENOUGH):
            fl.matmul(x, x, y)

    captured_while(work, lambda: fl.matmul(a, a, out=b))
    assert_same_bits(y.numpy(), b.cpu().numpy())


def test_streams_do_not_wait_for_each_other(torch, rng):
    """The same call on two streams: one that is held up does not hold up the other."""
    a = torch.from_numpy(normal(rng, 48, 48)).cuda()
    out = torch.empty_like(a)
    busy, free = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    for stream in (busy, free):
        with torch.cuda.stream(stream):
            for _ in range(ENOUGH):
                fl.matmul(a, a, out)
    torch.cuda.synchronize()
    with torch.cuda.stream(busy):
        torch.cuda._sleep(400_000_000)
        fl.matmul(a, a, out)
    with torch.cuda.stream(free):
        fl.matmul(a, a, out)
    free.synchronize()
    assert not busy.query()
    torch.cuda.synchronize()
    assert_product(out.cpu().numpy(), a.cpu().numpy(), a.cpu().numpy())
