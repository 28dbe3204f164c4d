"""Calls that repeat and the graphs that are made of them. Run by test_simulated_device.py alone."""

from __future__ import annotations

import numpy as np

import fastlinalg as fl
from support.accuracy import assert_product
from support.device_libraries import ENOUGH, F32
from support.operands import normal

put = fl.DeviceArray.from_numpy


def test_repeated_calls_over_streams(device, rng):
    """The same few calls, in any order on any streams: recorded or not, they follow the order of the program."""
    streams = [None, 1, 2, *(device.simulated_stream() for _ in range(3))]
    started = device.simulated_graph_launches()
    for _ in range(4):
        first, step = normal(rng, 24, 24), normal(rng, 24, 24) / 5
        x, y, factor = put(first), put(np.zeros((24, 24), F32)), put(step)
        want = first.astype(np.float64)
        few = rng.choice(len(streams), 2)
        for _ in range(30):
            fl.matmul(x, factor, out=y, stream=streams[rng.choice(few)])
            fl.transpose(y, out=x, stream=streams[rng.choice(few)])
            want = (want @ step).T
            largest = np.abs(want).max()
            if largest < 1e-3:
                fl.sgemm(x, put(np.eye(24, dtype=F32)), alpha=float(1 / largest), out=x)
                want /= largest
        np.testing.assert_allclose(x.numpy(), want, rtol=1e-2, atol=1e-3)
    assert device.simulated_graph_launches() - started > 100


def test_calls_that_take_turns_are_kept(device, rng):
    """Nearly all of a few: each has a place by its operands."""
    calls = [(put(normal(rng, 24, 24)), put(np.zeros((24, 24), F32))) for _ in range(8)]
    started = device.simulated_graph_launches()
    for _ in range(ENOUGH + 1):
        for x, y in calls:
            fl.transpose(x, out=y)
    assert device.simulated_graph_launches() - started > 4


def test_long_calls_leave_what_is_kept_of_short_ones(device, rng):
    x, y = put(normal(rng, 24, 24)), put(np.zeros((24, 24), F32))
    for _ in range(ENOUGH):
        fl.transpose(x, out=y)
    started = device.simulated_graph_launches()
    values = put(normal(rng, 200, 200))
    results = [fl.transpose(values) for _ in range(500)]
    fl.transpose(x, out=y)
    assert device.simulated_graph_launches() == started + 1
    del results


def test_lists_that_repeat_start_as_graphs(device, rng):
    """With a workspace, which may lie elsewhere each time, and without; each on a stream of its own, by turns, of what
    its memory holds by then. Several, as two whose addresses have one place in the cache take turns there."""
    lists, held, started = [], [], device.simulated_graph_launches()
    own = device.simulated_stream()
    for sizes, k, stream in (
        ((20, 30), 170, None),
        ((20, 30, 40), 9, 1),
        ((25, 35), 9, 1),
        ((15, 45), 9, None),
        ((600, 620), 1024, own),
    ):
        a, b = [normal(rng, n, k) for n in sizes], normal(rng, k, 180)
        lists.append((a, b, [put(x) for x in a], put(b), [put(np.zeros((n, 180), F32)) for n in sizes], stream))
    for _ in range(60):
        a, b, x, y, out, stream = lists[rng.integers(len(lists))]
        a[0] *= -2
        fl.transpose(put(a[0].T.copy()), out=x[0], stream=stream)
        fl.grouped_matmul(x, [y] * len(x), out, stream=stream)
        for got, exact in zip(out, a, strict=True):
            assert_product(got.numpy(), exact, b)
        held.append(put(np.zeros(int(rng.integers(1 << 18)), F32)))
    assert device.simulated_graph_launches() - started > 5
    fl.cuda.trim()
    started = device.simulated_graph_launches()
    fl.grouped_matmul(x, [y] * len(x), out, stream=stream)
    assert device.simulated_graph_launches() == started


def test_short_products_of_a_list_are_one_launch(device, rng):
    a, b = [put(normal(rng, 5, 6)) for _ in range(50)], [put(normal(rng, 6, 4)) for _ in range(50)]
    before = device.simulated_group_launches()
    got = fl.grouped_matmul(a, b)
    assert device.simulated_group_launches() == before + 1
    for x, y, z in zip(a, b, got, strict=True):
        np.testing.assert_allclose(z.numpy(), x.numpy() @ y.numpy(), rtol=1e-5, atol=1e-5)
