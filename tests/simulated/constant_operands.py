"""Operands whose splits stay, on streams of a caller and in captures. Run by test_simulated_device.py alone."""

from __future__ import annotations

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_product
from support.operands import normal
from support.simulation.streams import capture

put = fl.DeviceArray.from_numpy


class Named(_core.Weights):
    def __init__(self, *arrays, limit=2**30):
        super().__init__(limit)
        self.stamp = 0
        places = [(x.__cuda_array_interface__["data"][0], x.nbytes) for x in arrays]
        self.watch([(begin, begin + size, owner) for owner, (begin, size) in enumerate(places)])

    def _stamp(self, owner):
        return self.stamp


def product(named, a, b, out, stream):
    n = a.shape[0]
    pointers = [x.__cuda_array_interface__["data"][0] for x in (a, b, out)]
    _core.testing.product_for_tests(
        named, "fp16x2", n, n, n, pointers[0], n, 1, pointers[1], n, 1, pointers[2], n, 1, stream
    )


def test_a_split_is_there_before_another_stream_reads_it(device, rng):
    """Nothing but what is kept orders these products; what has gone is not freed under them."""
    n = 720
    streams = [device.simulated_stream() for _ in range(3)]
    a, b = normal(rng, n, n), normal(rng, n, n)
    x, y, *results = (put(value) for value in (a, b, a, a, a))
    named = Named(y)
    for turn in range(8):
        device.simulated_synchronize()
        for stream, out in zip(streams * 2, results * 2, strict=True):
            product(named, x, y, out, stream)
        if turn % 2:
            named.clear()
            others = [put(normal(rng, n, n)) for _ in range(4)]  # where it was
        device.simulated_synchronize()
        for out in results:
            assert_product(out.numpy(), a, b)
        del out
        b = normal(rng, n, n)
        fl.transpose(put(b.T), out=y).numpy()
        named.stamp += 1
    del others


def test_a_captured_product_has_nothing_of_it(device, rng):
    n = 720
    stream = device.simulated_stream()
    a, b = normal(rng, n, n), normal(rng, n, n)
    x, y, out = put(a), put(b), put(a)
    named = Named(y)
    for before in range(3):
        for _ in range(before):
            product(named, x, y, out, stream)
        device.simulated_synchronize()
        used = named.nbytes
        graph = capture(device, stream, lambda: product(named, x, y, out, stream))
        assert named.nbytes == used
        for _ in range(2):
            b = normal(rng, n, n)
            fl.transpose(put(b.T), out=y).numpy()
            named.stamp += 1
            assert device.simulated_launch(graph, stream) == 0
            device.simulated_synchronize()
            assert_product(out.numpy(), a, b)
            named.clear()


def test_a_product_of_an_operand_with_itself_keeps_no_split(device, rng):
    """It would be the split of two factors, which are cut in different ways."""
    n = 720
    b = normal(rng, n, n)
    y, out = put(b), put(b)
    named = Named(y)
    for _ in range(4):
        product(named, y, y, out, 0)
        device.simulated_synchronize()
        assert_product(out.numpy(), b, b)
    assert named.nbytes == 0 and fl.cuda.memory_info()["splits"] == 0


def test_what_is_kept_stays_within_its_limit(device, rng):
    """The least recently used splits give way to others; those of one operand, as either factor, count together."""
    n = 720
    x, out, *operands = (put(normal(rng, n, n)) for _ in range(6))

    def use(named, *factors):
        for _ in range(2):
            product(named, *(factors if len(factors) > 1 else (x, *factors)), out, 0)
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
