"""Splits that plans keep, on streams of a caller and in captures. Run by test_simulated_device.py alone."""

from __future__ import annotations

import pytest

import fastlinalg as fl
from support.accuracy import assert_product
from support.device_libraries import ENOUGH
from support.operands import normal
from support.simulation.streams import Unordered, capture

put = fl.DeviceArray.from_numpy


@pytest.mark.parametrize("constant", ["a", "b"])
def test_a_split_that_is_kept_on_changing_streams(device, rng, constant):
    """It is made on the stream of one execution, read on those of others, and made anew behind them."""
    n = 300
    streams = [None, 1, 2, *(device.simulated_stream() for _ in range(3))]
    hosts = {"a": normal(rng, n, n), "b": normal(rng, n, n)}
    arrays = {name: put(x) for name, x in hosts.items()}
    other = "b" if constant == "a" else "a"
    with fl.Matmul(*arrays.values(), kernel="fp16x2", constant=constant) as plan:
        for turn in range(3 * ENOUGH):
            if turn % 5 == 4:
                hosts[constant] = normal(rng, n, n)
                fl.transpose(put(hosts[constant].T), out=arrays[constant], stream=streams[rng.integers(6)])
                plan.reset_operands(**{constant: arrays[constant]})
            hosts[other] = normal(rng, n, n)
            fl.transpose(put(hosts[other].T), out=arrays[other], stream=streams[rng.integers(6)])
            result = plan.execute(stream=streams[rng.integers(6)])
            if turn % 3 == 0:
                assert_product(result.numpy(), *hosts.values())


def test_a_split_is_there_before_another_stream_reads_it(device, rng):
    """Nothing but the plan orders these executions."""
    n = 300
    streams = [device.simulated_stream() for _ in range(3)]
    a, b = normal(rng, n, n), normal(rng, n, n)
    x, y, *results = (put(value) for value in (a, b, a, a, a))
    for constant in 4 * ("a", "b"):
        with fl.Matmul(Unordered(x), Unordered(y), kernel="fp16x2", constant=constant) as plan:
            device.simulated_synchronize()
            for stream, out in zip(streams, results, strict=True):
                plan.reset_operands(out=Unordered(out))
                plan.execute(stream=stream)
            device.simulated_synchronize()
        for out in results:
            assert_product(out.numpy(), a, b)


@pytest.mark.parametrize("before", [0, 1, ENOUGH])
def test_captured_executions_leave_alone_what_is_kept(device, rng, before):
    n = 300
    hosts = [normal(rng, n, n) for _ in range(2)]
    a, b, out = (put(x) for x in (*hosts, hosts[0]))
    stream = device.simulated_stream()
    with fl.Matmul(a, b, out=out, kernel="fp16x2", constant="b") as plan:
        plan.plan()
        for _ in range(before):
            plan.execute()
        graph = capture(device, stream, lambda: plan.execute(stream=stream))
        for turn in range(4):
            hosts[0] = normal(rng, n, n)
            fl.transpose(put(hosts[0].T), out=a).numpy()
            if before == 0 and turn == 2:  # then the split is part of the graph
                hosts[1] = normal(rng, n, n)
                fl.transpose(put(hosts[1].T), out=b).numpy()
                plan.reset_operands(b=b)
            assert device.simulated_launch(graph, stream) == 0
            device.simulated_synchronize()
            assert_product(out.numpy(), *hosts)
            plan.execute()
            assert_product(out.numpy(), *hosts)
        if before == 0:
            other = put(normal(rng, n, n))
            plan.reset_operands(b=other)
            plan.execute()
            device.simulated_synchronize()  # who launches a graph orders it
            assert device.simulated_launch(graph, stream) == 0
            device.simulated_synchronize()
            assert_product(out.numpy(), *hosts)  # of the array that it was captured with
            plan.execute()
            assert_product(out.numpy(), hosts[0], other.numpy())
