"""Streams of a caller, captures and pinned operands. Run by test_simulated_device.py alone."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from fastlinalg._check import written
from support.accuracy import assert_product, assert_same_bits
from support.device_libraries import ENOUGH, WITH_WORKSPACE, Announced, view
from support.operands import normal
from support.pinned import check_products_of_pinned_operands
from support.simulation.streams import Unordered, capture

F32 = np.float32
put = fl.DeviceArray.from_numpy


def test_chains_over_streams(device, rng):
    """Each call waits for those that made its operands and for those that still read what it overwrites."""
    streams = [None, 0, 1, 2, *(device.simulated_stream() for _ in range(3))]
    for _ in range(12):
        first, second = normal(rng, 24, 24), normal(rng, 24, 24) / 5
        x, step, old = put(first), put(second), put(np.zeros((24, 24), F32))
        want, want_old = first.astype(np.float64), None
        for turn in range(8):
            stream = streams[rng.integers(len(streams))]
            fl.transpose(x, out=old, stream=streams[rng.integers(len(streams))])
            want_old = want.T
            x = fl.matmul(x, step, out=x if turn % 2 else None, stream=stream)
            want = want @ second
        np.testing.assert_allclose(x.numpy(), want, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(old.numpy(), want_old, rtol=1e-3, atol=1e-3)


def test_results_that_nobody_keeps(device, rng):
    """The memory of operands and results is given back behind the work that uses it."""
    streams = [None, *(device.simulated_stream() for _ in range(3))]
    a, b = normal(rng, 40, 30), normal(rng, 30, 50)
    for turn in range(20):
        x, y = put(a), put(b)
        product = fl.matmul(x, y, stream=streams[turn % 4])
        fl.matmul(x, y, stream=streams[(turn + 1) % 4])
        del x, y
        transposed = fl.transpose(product, stream=streams[(turn + 2) % 4])
        del product
        assert_product(transposed.numpy().T, a, b)
    del transposed
    gc.collect()
    device.simulated_synchronize()
    assert fl.cuda.memory_info()["used"] == 0


def every_second(x):
    """Row and column of a device array, which no kernel takes as it lies."""
    return view(x, lambda values: values[::2, ::2])


def test_arrays_with_a_stream_of_their_own(device, rng):
    """Calls on another one wait for it, and keep them until they are done."""
    first, second = device.simulated_stream(), device.simulated_stream()
    for _ in range(25):
        a, b = normal(rng, 40, 40), normal(rng, 40, 40)
        x, y, w, out = put(np.zeros((40, 40), F32)), put(a), put(b), put(b)
        device.simulated_synchronize()
        fl.transpose(Announced(y, stream=first), out=Announced(x, stream=first), stream=first)
        operand = Announced(x, stream=first)
        fl.matmul(operand, Announced(w, stream=second), out=Announced(out, stream=second), stream=second)
        alive = weakref.ref(operand)
        del operand
        assert alive() is not None
        device.simulated_synchronize()
        assert_product(out.numpy(), a.T, b)


def test_what_is_kept_goes_with_a_device_that_has_failed(device, rng):
    """Nothing is left to wait for."""
    stream = device.simulated_stream()
    operand, other = (Announced(put(normal(rng, 40, 40)), stream=stream) for _ in range(2))
    fl.matmul(operand, other, stream=device.simulated_stream())
    alive = weakref.ref(operand)
    del operand
    assert alive() is not None
    device.simulated_fail_calls(1, 1000, 719)  # cudaErrorLaunchFailure
    with pytest.raises(fl.CudaError):
        fl.cuda.trim()
    device.simulated_fail_calls(0, 0, 0)
    assert alive() is None


def test_consumers_wait_for_what_they_are_given(device, rng):
    """By DLPack: on the stream that they name, or on the legacy one."""
    for stream in (None, 1, device.simulated_stream()) * 8:
        a = normal(rng, 40, 40)
        source, x, out = put(a), put(a), put(a.T)
        device.simulated_synchronize()
        fl.transpose(source, out=x)
        x.__dlpack__(stream=stream)
        fl.transpose(Unordered(x), out=Unordered(out), stream=stream or 1)
        device.simulated_synchronize()
        assert_same_bits(out.numpy(), a)


def test_strided_operands_are_packed_in_order(device, rng):
    streams = [None, *(device.simulated_stream() for _ in range(2))]
    a, b, c = normal(rng, 60, 60), normal(rng, 60, 60), normal(rng, 30, 30)
    for turn in range(20):
        x, y, out = put(a), put(b), put(c)
        fl.sgemm(every_second(x), every_second(y), out, beta=0.5, out=out, stream=streams[turn % 3])
        del x, y
        assert_product(out.numpy(), a[::2, ::2], b[::2, ::2], c, beta=0.5)


def test_chains_of_lists_over_streams(device, rng):
    """The streams of a list begin where its call's stream is, and that goes on when all of them are done.
    A long list is launched in parts."""
    streams = [None, 0, 1, 2, *(device.simulated_stream() for _ in range(3))]
    for turn in range(12):
        first, step = [normal(rng, 24 + i, 24) for i in range(64)], normal(rng, 24, 24) / 5
        here, there, y = [put(x) for x in first], [put(np.zeros_like(x)) for x in first], put(step)
        plans = [fl.GroupedMatmul(x, [y] * 64, out=z) for x, z in ((here, there), (there, here))] * 6
        want = [x.astype(np.float64) for x in first]
        for step_of in range(6):
            stream = streams[rng.integers(len(streams))]
            if turn % 2:
                plans[step_of].execute(stream=stream)
            else:
                fl.grouped_matmul(here, [y] * 64, out=there, stream=stream)
                here, there = there, here
            want = [x @ step for x in want]
        for got, exact in zip(reversed(here), reversed(want), strict=True):  # the shortest were launched last
            np.testing.assert_allclose(got.numpy(), exact, rtol=1e-3, atol=1e-3)


def test_the_last_of_a_list_is_waited_for(device, rng):
    a, b = [normal(rng, 40, 30), normal(rng, 20, 30)], normal(rng, 30, 25)
    x, y = [put(v) for v in a], put(b)
    for _ in range(40):
        got = fl.grouped_matmul(x, [y, y])
        assert_product(got[1].numpy(), a[1], b)


def test_lists_are_captured(device, rng):
    a, b = [normal(rng, 30 + i, 40) for i in range(5)], normal(rng, 40, 20)
    x, y = [put(v) for v in a], put(b)
    out, of_plan = ([put(np.zeros((len(v), 20), F32)) for v in a] for _ in range(2))
    stream, plan = device.simulated_stream(), fl.GroupedMatmul(x, [y] * 5, out=of_plan)

    def calls():
        fl.grouped_matmul(x, [y] * 5, out, stream=stream)
        plan.execute(stream=stream)

    graph = capture(device, stream, calls)
    fl.grouped_matmul(x, [y] * 5)  # by streams that take no part in it
    for _ in range(3):
        assert device.simulated_launch(graph, stream) == 0
        device.simulated_synchronize()
        for first, second, v in zip(out, of_plan, a, strict=True):
            assert_product(first.numpy(), v, b)
            assert_product(second.numpy(), v, b)


def test_calls_are_captured(device, rng):
    a, b = normal(rng, 64, 64), normal(rng, 64, 64)
    x, y, z, out = put(a), put(b), put(a), put(b)
    stream = device.simulated_stream()
    fresh = []  # whoever captures keeps the results

    def calls():
        fresh.append(fl.matmul(x, y, stream=stream))  # its memory has to be there before the first launch
        fl.matmul(x, y, out=z, stream=stream)
        fl.transpose(z, out=out, stream=stream)

    for _ in range(40):
        graph = capture(device, stream, calls)
        for _ in range(2):
            assert device.simulated_launch(graph, stream) == 0
            device.simulated_synchronize()
            assert_product(out.numpy().T, a, b)
            assert_product(fresh[-1].numpy(), a, b)


@pytest.mark.parametrize("n", [24, 130])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_triangles_over_streams(device, rng, uplo, n):
    """The copies of a triangle and the product between them are on the call's stream."""
    streams = [None, 0, 1, 2, *(device.simulated_stream() for _ in range(3))]
    inside = written(n, uplo)
    for _ in range(5):
        first, second, c = normal(rng, n, 20), normal(rng, n, 20), normal(rng, n, n)
        operands, y, want = (put(first), put(second)), put(c), c.astype(np.float64)
        for turn in range(8):
            stream = streams[rng.integers(len(streams))]
            fl.ssyrk(operands[turn % 2], y, beta=-0.5, uplo=uplo, out=y, stream=stream)
            a = (first, second)[turn % 2].astype(np.float64)
            want = np.where(inside, a @ a.T - 0.5 * want, want)
        del operands
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-4, atol=1e-3)


def test_triangles_are_captured(device, rng):
    a, c = normal(rng, 130, 20), normal(rng, 130, 130)
    x, y, fresh = put(a), put(c), []
    stream, inside = device.simulated_stream(), np.tri(130, dtype=bool)

    def calls():
        fl.ssyrk(x, y, beta=0.5, uplo="L", out=y, stream=stream)
        fresh.append(fl.ssyrk(x, uplo="L", stream=stream))

    graph, want, product = capture(device, stream, calls), c.astype(np.float64), a.astype(np.float64) @ a.T
    for _ in range(3):
        assert device.simulated_launch(graph, stream) == 0
        device.simulated_synchronize()
        want = np.where(inside, product + 0.5 * want, want)
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(fresh[0].numpy(), np.where(inside, product, 0), rtol=1e-4, atol=1e-4)


def test_a_call_on_host_arrays_is_not_captured(device, rng):
    a = normal(rng, 30, 30)
    stream = device.simulated_stream()
    assert device.simulated_begin_capture(stream) == 0
    with pytest.raises(ValueError, match="cannot be captured"):
        fl.matmul(a, a, device="cuda", stream=stream)
    device.simulated_end_capture(stream)


@pytest.fixture
def pinned(device):
    def copy(values):
        memory = np.ctypeslib.as_array(device.simulated_pinned(values.nbytes), values.shape)
        memory[...] = values
        return memory

    return copy


def test_pinned_memory_may_change_behind_a_copy(pinned, rng):
    """The device copies it later than ordinary memory, unless it is waited for."""
    values = normal(rng, 40, 30)
    for _ in range(20):
        memory = pinned(values)
        x = put(memory)
        memory[...] = 7
        assert_same_bits(x.numpy(), values)


def test_pinned_operands_are_used_where_they_are(device, pinned, limit, rng):
    check_products_of_pinned_operands(pinned, 400, rng)
    a, b, c = normal(rng, 1200, 400), normal(rng, 400, 1300), normal(rng, 1200, 1300)
    before = device.simulated_direct_copies()
    limit(3 << 20)
    assert_product(fl.sgemm(pinned(a), pinned(b), c, beta=0.5, out=pinned(c), device="cuda"), a, b, c, beta=0.5)
    assert device.simulated_direct_copies() > before


# ---------------------------------------------------------------- errors and times
def test_code_that_does_not_fit_says_what_there_is(device):
    a = np.ones((40, 40), np.float32)
    device.simulated_fail_calls(1, 1, 209)  # cudaErrorNoKernelImageForDevice
    wanted = r"has code for 90a-real 80-virtual, and cuda:0 \(simulated\) has compute capability 9\.0"
    with pytest.raises(fl.CudaError, match=wanted):
        fl.matmul(a, a, device="cuda")
    device.simulated_fail_calls(0, 0, 0)
    assert (fl.matmul(a, a, device="cuda") == 40).all()


def test_so_many_launches_are_timed():
    streams = []
    assert len(_core.time_in_graph(streams.append, 3, 2)) == 2
    assert len(streams) == 1 + 3


# ---------------------------------------------------------------- plans
def test_executions_in_a_chain_over_streams(device, rng):
    streams = [None, 0, 1, 2, *(device.simulated_stream() for _ in range(3))]
    for _ in range(5):
        first, step = normal(rng, 24, 24), normal(rng, 24, 24) / 5
        x, y, factor = put(first), put(np.zeros((24, 24), F32)), put(step)
        want = first.astype(np.float64)
        with fl.Matmul(x, factor, out=y) as there, fl.Matmul(y, factor, out=x) as back:
            for turn in range(2 * ENOUGH):
                (back if turn % 2 else there).execute(stream=streams[rng.integers(len(streams))])
                want = want @ step
                want /= np.abs(want).max()
                if turn % 2:
                    host = x.numpy()
                    np.testing.assert_allclose(host / np.abs(host).max(), want, rtol=1e-2, atol=1e-2)
                    fl.transpose(put((host / np.abs(host).max()).T), out=x, stream=streams[turn % len(streams)])


@pytest.mark.parametrize("n", [40, WITH_WORKSPACE])
def test_one_plan_on_streams_that_come_and_go(device, rng, n):
    """Executions that share a workspace follow one another, and the plan needs none of their streams afterwards."""
    a, b = normal(rng, n, n), normal(rng, n, n)
    x, y, out = put(a), put(b), put(b)
    want = fl.matmul(x, y).numpy()
    for operands in ((x, y), (Unordered(x), Unordered(y))):
        for keywords in ({}, {"out": out}, {"out": Unordered(out)}):
            plan, results = fl.Matmul(*operands, **keywords), []
            for _ in range(ENOUGH if n < WITH_WORKSPACE else 6):
                stream = device.simulated_stream()
                results.append(plan.execute(stream=stream))
                device.simulated_destroy_stream(stream)
            plan.free()
            del plan
            if keywords:
                device.simulated_synchronize()
                results = [out]
            for result in results:
                np.testing.assert_array_equal(result.numpy(), want)


def test_out_that_overlaps_an_operand_on_streams_that_go(device, rng):
    a = normal(rng, 32, 32)
    for wrap in (lambda x: x, Unordered):
        x = put(a)
        plan = fl.Matmul(wrap(x), put(np.eye(32, dtype=F32) * 2), out=wrap(x))
        for _ in range(ENOUGH):
            stream = device.simulated_stream()
            plan.execute(stream=stream)
            if wrap is Unordered:
                device.simulated_synchronize()
            device.simulated_destroy_stream(stream)
        del plan
        gc.collect()
        np.testing.assert_array_equal(x.numpy(), a * F32(2.0**ENOUGH))


@pytest.mark.parametrize("wrap", [lambda x: x, Unordered], ids=["known", "unordered"])
def test_operands_go_before_the_execution_runs(device, rng, wrap):
    """With the plan, by free(), and when others take their place."""
    a, b = normal(rng, 40, 30), normal(rng, 30, 50)
    for turn in range(15):
        stream = device.simulated_stream()
        out = put(np.zeros((40, 50), F32))
        plan = fl.Matmul(wrap(put(a)), wrap(put(b)), out=wrap(out))
        for _ in range(1 + turn % 3):
            plan.execute(stream=stream)
        if turn % 3 == 0:
            plan.reset_operands(wrap(put(a + 1)), wrap(put(b + 1)), out=wrap(put(a @ b)))
        elif turn % 3 == 1:
            plan.free()
        del plan
        for _ in range(3):
            put(np.full((40, 50), np.nan, F32))
        if wrap is Unordered:
            device.simulated_synchronize()
        assert_product(out.numpy(), a, b)


def test_packed_operands_of_plans(device, rng):
    streams = [None, *(device.simulated_stream() for _ in range(2))]
    a, b, c = normal(rng, 60, 60), normal(rng, 30, 30), normal(rng, 30, 30)
    x, y, out = put(a), put(b), put(c)
    with fl.Matmul(every_second(x), y, out=out) as plan:
        for turn in range(ENOUGH):
            plan.execute(stream=streams[turn % 3])
        assert_product(out.numpy(), a[::2, ::2], b)
        plan.reset_operands(b=put(c))  # the one that is not copied lies elsewhere
        plan.execute()
        assert_product(out.numpy(), a[::2, ::2], c)


@pytest.mark.parametrize("before", [0, 1, ENOUGH])
@pytest.mark.parametrize("n", [64, WITH_WORKSPACE])
def test_executions_are_captured(device, rng, before, n):
    a, b = normal(rng, n, n), normal(rng, n, n)
    x, y, out = put(a), put(b), put(b)
    stream = device.simulated_stream()
    want = fl.matmul(x, y).numpy()
    with fl.Matmul(x, y, out=out) as plan:
        plan.plan()
        for _ in range(before):
            plan.execute()
        graph = capture(device, stream, lambda: plan.execute(stream=stream))
        for _ in range(2):
            fl.transpose(put(b), out=out).numpy()
            assert device.simulated_launch(graph, stream) == 0
            device.simulated_synchronize()
            np.testing.assert_array_equal(out.numpy(), want)
            plan.execute()
            np.testing.assert_array_equal(out.numpy(), want)
