"""Operands whose splits stay, on streams of a caller and in captures. Run by test_simulated_device.py alone."""

from __future__ import annotations

import numpy as np

import fastlinalg as fl
from support.accuracy import assert_product
from support.operands import normal
from support.simulation.streams import capture
from support.weights import Named, queue_product

put = fl.DeviceArray.from_numpy
N, K = 720, 256  # of less k nothing is kept


def test_a_split_is_there_before_another_stream_reads_it(device, rng):
    """Nothing but what is kept orders these products; what has gone is not freed under them."""
    streams = [device.simulated_stream() for _ in range(3)]
    a, b = normal(rng, N, K), normal(rng, K, N)
    x, y, *results = map(put, (a, b, *np.zeros((3, N, N), np.float32)))
    named = Named(y)
    for turn in range(8):
        device.simulated_synchronize()
        for stream, out in zip(streams * 2, results * 2, strict=True):
            queue_product(named, x, y, out, stream)
        assert named.nbytes > 0
        if turn % 2:
            named.clear()
            others = [put(normal(rng, K, N)) for _ in range(4)]  # where it was
        device.simulated_synchronize()
        for out in results:
            assert_product(out.numpy(), a, b)
        del out
        b = normal(rng, K, N)
        fl.transpose(put(b.T), out=y).numpy()
        named.stamps[0] += 1
    del others


def test_a_captured_product_has_nothing_of_it(device, rng):
    stream = device.simulated_stream()
    a, b = normal(rng, N, K), normal(rng, K, N)
    x, y, out = put(a), put(b), put(np.zeros((N, N), np.float32))
    named = Named(y)
    for before in range(3):
        for _ in range(before):
            queue_product(named, x, y, out, stream)
        device.simulated_synchronize()
        used = named.nbytes
        graph = capture(device, stream, lambda: queue_product(named, x, y, out, stream))
        assert named.nbytes == used
        for _ in range(2):
            b = normal(rng, K, N)
            fl.transpose(put(b.T), out=y).numpy()
            named.stamps[0] += 1
            assert device.simulated_launch(graph, stream) == 0
            device.simulated_synchronize()
            assert_product(out.numpy(), a, b)
            named.clear()


def test_a_product_of_an_operand_with_itself_keeps_no_split(device, rng):
    """It would be the split of two factors, which are cut in different ways."""
    b = normal(rng, N, N)
    y, out = put(b), put(b)
    named = Named(y)
    for _ in range(4):
        queue_product(named, y, y, out)
        device.simulated_synchronize()
        assert_product(out.numpy(), b, b)
    assert named.nbytes == 0 and fl.cuda.memory_info()["splits"] == 0


def test_what_is_kept_stays_within_its_limit(device, rng):
    """The least recently used splits give way to others; those of one operand, as either factor, count together."""
    x, out, *operands = (put(normal(rng, N, N)) for _ in range(6))

    def use(named, *factors):
        for _ in range(2):
            queue_product(named, *(factors if len(factors) > 1 else (x, *factors)), out)
        device.simulated_synchronize()
        return named.nbytes

    each = use(Named(operands[0]), operands[0])
    one = Named(operands[0], limit=3 * each // 2)
    assert use(one, operands[0]) == use(one, operands[0], x) == each
    del one
    few = Named(*operands, limit=5 * each // 2)
    for _ in range(3):
        assert [use(few, y) for y in operands][-1] == 2 * each
    there = [fl.cuda.memory_info(i)["splits"] for i in range(len(fl.devices()))]
    assert there == [2 * each] + [0] * (len(there) - 1) and few.nbytes == 2 * each
