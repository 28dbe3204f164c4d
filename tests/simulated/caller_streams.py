"""Streams of a caller, captures and pinned operands. Run by test_simulated_device.py alone."""

from __future__ import annotations

import ctypes
import gc
import os

import numpy as np
import pytest

import fastlinalg as fl
from accuracy import assert_product

F32 = np.float32
put = fl.DeviceArray.from_numpy


@pytest.fixture(scope="module")
def device():
    """The functions of control.cpp, from the library that the package uses."""
    library = ctypes.CDLL(os.path.join(os.environ["LD_LIBRARY_PATH"], "libfastlinalg.so.0.1"))
    library.simulated_stream.restype = library.simulated_end_capture.restype = ctypes.c_void_p
    for function in (library.simulated_begin_capture, library.simulated_end_capture):
        function.argtypes = [ctypes.c_void_p]
    library.simulated_launch.argtypes = [ctypes.c_void_p] * 2
    library.simulated_pinned.restype = ctypes.POINTER(ctypes.c_float)
    library.simulated_pinned.argtypes = [ctypes.c_size_t]
    return library


def capture(device, stream, calls):
    device.simulated_synchronize()
    assert device.simulated_begin_capture(stream) == 0
    try:
        calls()
    finally:
        graph = device.simulated_end_capture(stream)
    return graph


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=F32)


def test_chains_over_streams(device, rng):
    """Each call waits for those that made its operands and for those that still read what it overwrites."""
    streams = [None, 1, 2, *(device.simulated_stream() for _ in range(3))]
    for _ in range(30):
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
    for turn in range(40):
        x, y = put(a), put(b)
        product = fl.matmul(x, y, stream=streams[turn % 4])
        fl.matmul(x, y, stream=streams[(turn + 1) % 4])
        del x, y
        turned = fl.transpose(product, stream=streams[(turn + 2) % 4])
        del product
        assert_product(turned.numpy().T, a, b)
    del turned
    gc.collect()
    device.simulated_synchronize()
    assert fl.cuda.memory_info()["used"] == 0


class EverySecond:
    """Every second row and column of a device array, which no kernel takes as it lies."""

    def __init__(self, x):
        given = x.__cuda_array_interface__
        strides = tuple(2 * stride for stride in x.strides)
        self.__cuda_array_interface__ = given | {"shape": tuple(n // 2 for n in x.shape), "strides": strides}
        self.owner = x


def test_strided_operands_are_packed_in_order(device, rng):
    streams = [None, *(device.simulated_stream() for _ in range(2))]
    a, b, c = normal(rng, 60, 60), normal(rng, 60, 60), normal(rng, 30, 30)
    for turn in range(20):
        x, y, out = put(a), put(b), put(c)
        fl.sgemm(EverySecond(x), EverySecond(y), out, beta=0.5, out=out, stream=streams[turn % 3])
        del x, y
        assert_product(out.numpy(), a[::2, ::2], b[::2, ::2], c, beta=0.5)


def test_calls_are_captured(device, rng):
    a, b = normal(rng, 64, 64), normal(rng, 64, 64)
    x, y, z, out = put(a), put(b), put(a), put(b)
    stream = device.simulated_stream()
    fresh = []  # whoever captures keeps the results

    def calls():
        fl.matmul(x, y, out=z, stream=stream)
        fl.transpose(z, out=out, stream=stream)
        fresh.append(fl.matmul(x, y, stream=stream))

    graph = capture(device, stream, calls)
    for _ in range(3):
        assert device.simulated_launch(graph, stream) == 0
        device.simulated_synchronize()
        assert_product(out.numpy().T, a, b)
        assert_product(fresh[0].numpy(), a, b)


def test_a_call_on_host_arrays_is_not_captured(device, rng):
    a = normal(rng, 30, 30)
    stream = device.simulated_stream()
    assert device.simulated_begin_capture(stream) == 0
    with pytest.raises(ValueError, match="cannot be captured"):
        fl.matmul(a, a, device="cuda", stream=stream)
    device.simulated_end_capture(stream)


def test_pinned_operands_are_used_where_they_are(device, rng):
    def pinned(values):
        memory = np.ctypeslib.as_array(device.simulated_pinned(values.nbytes), values.shape)
        memory[...] = values
        return memory

    a, b, c = normal(rng, 1200, 400), normal(rng, 400, 1300), normal(rng, 1200, 1300)
    out = pinned(c)
    assert_product(fl.sgemm(pinned(a), pinned(b), out=out, device="cuda"), a, b)
    assert_product(fl.sgemm(pinned(a)[:, 5:305], b[:300], device="cuda"), a[:, 5:305], b[:300])
    frame = pinned(np.full((1210, 1310), 7, F32))
    fl.sgemm(a, pinned(np.asfortranarray(b).T).T, out=frame[3:1203, 4:1304], device="cuda")
    assert_product(frame[3:1203, 4:1304], a, b)
    frame[3:1203, 4:1304] = 7
    assert (frame == 7).all()
    out[...] = c
    assert_product(fl.sgemm(pinned(a), b, out, beta=0.5, out=out, device="cuda"), a, b, c, beta=0.5)
    fl.cuda.set_memory_limit(3 << 20)
    try:
        assert_product(fl.sgemm(pinned(a), pinned(b), out, beta=0.5, out=pinned(c), device="cuda"), a, b, out, beta=0.5)
    finally:
        fl.cuda.set_memory_limit(0)
