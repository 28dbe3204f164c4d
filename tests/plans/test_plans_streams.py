"""fl.Matmul on arrays in device memory: streams that come and go, graphs of the caller's and of the plan's own."""

from __future__ import annotations

import gc
import importlib
import time

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.device_libraries import (
    ENOUGH,
    WITH_WORKSPACE,
    Announced,
    Own,
    as_torch,
    captured_while,
    delay,
)
from support.operands import normal

pytestmark = pytest.mark.gpu
F32 = np.float32


@pytest.mark.parametrize("n", [48, 512])
def test_out_that_overlaps_an_operand_on_changing_streams(n, torch, rng):
    streams = [None, torch.cuda.Stream(), torch.cuda.Stream()]
    host = (normal(rng, n, n) / n).astype(F32)
    a, b = torch.from_numpy(host).cuda(), torch.eye(n, device="cuda") * 2
    with fl.Matmul(a, b, out=a, precision="strict") as plan:
        for turn in range(1, 31):
            plan.execute(stream=streams[turn % 3] and streams[turn % 3].cuda_stream)
    assert_same_bits(a.cpu().numpy(), host * F32(2.0**30))


def test_a_plan_follows_the_current_stream(torch, rng):
    """Work queued before and after on the caller's current stream is before and after the execution."""
    n = 700
    a, b = (torch.zeros((n, n), device="cuda") for _ in range(2))
    out = torch.empty_like(a)
    busy = torch.empty((4096, 4096), device="cuda")
    with fl.Matmul(a, b, out=out) as plan:
        plan.execute()
        for turn in range(ENOUGH):
            stream = torch.cuda.Stream() if turn % 2 else torch.cuda.current_stream()
            with torch.cuda.stream(stream):
                torch.matmul(busy, busy)  # holds the stream
                a.fill_(turn + 1), b.fill_(2.0)
                plan.execute()
                copy = out.clone()
            stream.synchronize()
            assert (copy == 2.0 * n * (turn + 1)).all(), turn
            torch.cuda.synchronize()


@pytest.mark.parametrize("n", [64, WITH_WORKSPACE])
def test_one_plan_on_several_streams(n, torch, rng):
    """They share the workspace: an execution must not begin while another uses it."""
    host = [normal(rng, n, n) for _ in range(2)]
    a, b = (torch.from_numpy(x).cuda() for x in host)
    want = fl.matmul(a, b)
    streams = [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    with fl.Matmul(a, b) as plan:
        plan.plan()
        assert (plan.workspace_bytes > 0) == (n == WITH_WORKSPACE)
        got = [plan.execute(stream=streams[i % 3].cuda_stream) for i in range(9)]
    with fl.Matmul(a, b, out=torch.empty_like(want)) as plan:
        for i in range(ENOUGH + 3):
            got.append(plan.execute(stream=streams[i % 3].cuda_stream).clone())
    torch.cuda.synchronize()
    assert all(torch.equal(x, want) for x in got)


@pytest.mark.parametrize("n", [64, WITH_WORKSPACE])
@pytest.mark.parametrize("before", [0, 1, ENOUGH])
def test_executions_are_captured_in_a_graph(n, before, torch, rng):
    a, b = (torch.zeros((n, n), device="cuda") for _ in range(2))
    out = torch.empty_like(a)
    with fl.Matmul(a, b, out=out) as plan:
        plan.plan()
        for _ in range(before):
            plan.execute()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            plan.execute()
        for _ in range(3):
            host = [normal(rng, n, n) for _ in range(2)]
            a.copy_(torch.from_numpy(host[0])), b.copy_(torch.from_numpy(host[1]))
            graph.replay()
            assert_product(out.cpu().numpy(), *host)
            out.fill_(float("nan"))
            plan.execute()
            assert_product(out.cpu().numpy(), *host)
        del graph


def test_plans_and_operands_may_go_while_the_device_is_behind(producer, rng):
    hosts = [normal(rng, 96, 96) for _ in range(2)]
    fl.cuda.trim()
    results, used = [], fl.cuda.memory_info()["used"]
    for turn in range(40):
        a, b = (producer.put(x) for x in hosts)
        plan = fl.Matmul(a, b)
        for _ in range(ENOUGH if turn < 4 else 1):
            result = plan.execute()
        results.append(result)
        del plan, a, b, result
        producer.put(np.full((96, 96), np.nan, F32))
    for result in results:
        assert_product(producer.get(result), *hosts)
    if isinstance(producer, Own):
        del result, results
        fl.cuda.trim()
        assert fl.cuda.memory_info()["used"] == used


def test_a_stream_that_is_gone(torch, cupy, rng):
    host = normal(rng, 64, 64)
    own = [fl.DeviceArray.from_numpy(host) for _ in range(2)]
    for a in (torch.from_numpy(host).cuda(), own[0], Announced(own[1])):
        for out in (None, a):
            plan = fl.Matmul(a, a, out=out)
            for _ in range(3):
                stream = cupy.cuda.Stream(non_blocking=True)
                plan.execute(stream=stream)
                del stream
                gc.collect()
            plan.free()
            del plan
    torch.cuda.synchronize()
    assert_product(fl.matmul(host, host, device="cuda"), host, host)


def test_nothing_waits_and_nothing_allocates(torch):
    a = torch.ones((64, 64), device="cuda")
    out = torch.empty_like(a)
    fl.matmul(a, a, out=out)
    with fl.Matmul(a, a, out=out) as plan:
        plan.execute()
        torch.cuda.synchronize()
        before = fl.cuda.memory_info(), torch.cuda.memory_stats()["allocation.all.allocated"]
        torch.cuda._sleep(400_000_000)
        start = time.perf_counter()
        for _ in range(ENOUGH):
            plan.execute()
        assert time.perf_counter() - start < 0.1
        assert not torch.cuda.default_stream().query()
        torch.cuda.synchronize()
        after = fl.cuda.memory_info(), torch.cuda.memory_stats()["allocation.all.allocated"]
    assert after[0]["used"] == before[0]["used"] and after[1] == before[1]
    assert (out == 64).all()


def test_recording_while_another_thread_captures(torch, rng):
    """A capture in the default mode forbids much to all threads, and is spoilt by it."""
    a = torch.from_numpy(normal(rng, 64, 64)).cuda()
    b = torch.zeros_like(a)
    x = fl.DeviceArray.from_numpy(a.cpu().numpy())
    y = fl.DeviceArray.from_numpy(np.zeros((64, 64), F32))

    def work():
        with fl.Matmul(x, x, out=y) as plan:
            for _ in range(ENOUGH):
                plan.execute()

    captured_while(work, lambda: fl.matmul(a, a, out=b))
    assert_same_bits(y.numpy(), b.cpu().numpy())


def test_cupy_streams(cupy, rng):
    a = cupy.asarray(normal(rng, 64, 64))
    out = cupy.empty_like(a)
    want = cupy.asnumpy(fl.matmul(a, a))
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.get_current_stream().synchronize()
    with fl.Matmul(a, a, out=out, stream=stream) as plan:
        for _ in range(ENOUGH):
            out[...] = 0
            plan.execute()
            assert_same_bits(cupy.asnumpy(out), want)


def test_numba_streams_are_waited_for(torch, rng):
    """An array that is bound to a stream names it in its interface."""
    pytest.importorskip("numba")
    cuda = importlib.import_module("numba.cuda")
    host, stream = normal(rng, 64, 64), cuda.stream()
    late = cuda.to_device(host)
    a = cuda.to_device(np.zeros_like(host), stream=stream)
    out = cuda.to_device(np.zeros_like(host), stream=stream)
    cuda.synchronize()
    handle = a.__cuda_array_interface__["stream"]
    assert handle, "numba does not name the stream"
    with fl.Matmul(a, a, out=out) as plan:
        for call in (lambda: fl.matmul(a, a, out=out), plan.execute):
            a.copy_to_device(np.zeros_like(host), stream=stream)
            stream.synchronize()
            delay(torch, handle)
            a.copy_to_device(late, stream=stream)
            call()
            got = out.copy_to_host(stream=stream)
            stream.synchronize()
            assert_product(got, host, host)


@pytest.mark.parametrize("stream", [1, 2, "handle"])
def test_the_stream_that_an_interface_names_is_waited_for(stream, torch, rng):
    host = normal(rng, 64, 64)
    handle = torch.cuda.Stream().cuda_stream if stream == "handle" else stream
    memory, late = torch.zeros((64, 64), device="cuda"), torch.from_numpy(host).cuda()
    b = fl.DeviceArray.from_numpy(host)
    operand, side = Announced(memory, stream=handle), torch.cuda.Stream()
    with fl.Matmul(operand, b) as plan:
        for call in (lambda: fl.matmul(operand, b), lambda: fl.matmul(operand, b, stream=side), plan.execute):
            torch.cuda.synchronize()
            with torch.cuda.stream(as_torch(torch, handle)):
                memory.zero_()
                delay(torch, handle)
                memory.copy_(late)  # still to come when the call is made
                result = call()
                memory.fill_(float("nan"))  # after the call in the order of the program
            assert_product(result.numpy(), host, host)


@pytest.mark.gpu2
def test_plans_on_the_second_device(torch, rng):
    """The caller's current device stays, and the workspace and the graph are on that of the operands."""
    for n in (48, WITH_WORKSPACE):
        host = [normal(rng, n, n) for _ in range(2)]
        here, there = ([torch.from_numpy(x).to(f"cuda:{i}") for x in host] for i in (0, 1))
        out = torch.empty_like(there[0])
        want = fl.matmul(*here).cpu().numpy()
        used = fl.cuda.memory_info(0)["used"]
        with fl.Matmul(*there, out=out) as plan, fl.Matmul(*there) as fresh:
            for _ in range(ENOUGH):
                plan.execute()
                assert_same_bits(fresh.execute().cpu().numpy(), want)
                assert_same_bits(out.cpu().numpy(), want)
                assert torch.cuda.current_device() == 0
            assert plan.device == "cuda:1" and fl.cuda.memory_info(0)["used"] == used
            with pytest.raises(ValueError, match="one place"):
                plan.reset_operands(*here)
