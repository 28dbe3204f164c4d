"""The libraries that own arrays in device memory, behind one interface: put, get, type, and arrays of NaN."""

from __future__ import annotations

import gc
import importlib
import threading

import numpy as np
import pytest

import fastlinalg as fl

F32 = np.float32
# Of the plans in the tests:
WITH_WORKSPACE = 1024  # accurate products of this size split their operands into a workspace
ENOUGH = 8  # executions: the first are launches, a later one records a graph, the last start it


class Torch:
    name = "torch"

    def __init__(self):
        self.lib = pytest.importorskip("torch")

    def put(self, x):
        return self.lib.from_numpy(np.ascontiguousarray(x)).cuda()

    def get(self, x):
        return x.cpu().numpy()

    def type(self):
        return self.lib.Tensor

    def empty(self, *shape):
        return self.lib.full(shape, float("nan"), device="cuda")


class Cupy:
    name = "cupy"

    def __init__(self):
        self.lib = pytest.importorskip("cupy")

    def put(self, x):
        return self.lib.asarray(np.ascontiguousarray(x))

    def get(self, x):
        return self.lib.asnumpy(x)

    def type(self):
        return self.lib.ndarray

    def empty(self, *shape):
        return self.lib.full(shape, np.nan, F32)


class Own:
    name = "own"

    def put(self, x):
        return fl.DeviceArray.from_numpy(x)

    def get(self, x):
        return x.numpy()

    def type(self):
        return fl.DeviceArray

    def empty(self, *shape):
        return self.put(np.full(shape, np.nan, F32))


class Numba(Own):
    name = "numba"

    def __init__(self):
        pytest.importorskip("numba")
        self.lib = importlib.import_module("numba.cuda")

    def put(self, x):
        array = self.lib.to_device(np.ascontiguousarray(x))
        # CUDA returns from a copy of up to 64 KiB once the host memory is read: no other stream may rely on it yet, and
        # the interface of this array names no stream to wait for.
        self.lib.synchronize()
        return array

    def get(self, x):
        if isinstance(x, fl.DeviceArray):
            return x.numpy()
        fl.DeviceArray.from_numpy(np.zeros(1, F32)).numpy()  # waits for the stream that wrote `out`
        return x.copy_to_host()


class Jax:
    name = "jax"

    def __init__(self):
        pytest.importorskip("jax")
        self.lib = importlib.import_module("jax.numpy")
        if self.put(np.zeros(1, F32)).__dlpack_device__()[0] != 2:
            pytest.skip("this JAX has no CUDA device")

    def put(self, x):
        return self.lib.asarray(x)

    def get(self, x):
        return np.asarray(x)

    def type(self):
        return importlib.import_module("jax").Array


class Announced:
    """A DeviceArray of which nothing but ``__cuda_array_interface__`` is known, which is asked for in every call."""

    def __init__(self, x, **changes):
        self.owner, self.asked, self.changes = x, 0, changes

    @property
    def __cuda_array_interface__(self):
        self.asked += 1
        return self.owner.__cuda_array_interface__ | self.changes


class Exported:
    """The same with DLPack."""

    def __init__(self, x):
        self.owner, self.asked = x, 0

    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()

    def __dlpack__(self, **keywords):
        self.asked += 1
        return self.owner.__dlpack__(**keywords)


class Foreign(Own):
    def __init__(self, kind):
        self.kind = kind

    def put(self, x):
        return self.kind(super().put(x))

    def get(self, x):
        return super().get(x if isinstance(x, fl.DeviceArray) else x.owner)


LIBRARIES = {kind.name: kind for kind in (Torch, Cupy, Own, Numba, Jax)}


# Those whose arrays a plan can write, two made-up ones among them.
WRITABLE = {kind.name: kind for kind in (Torch, Cupy, Own, Numba)}
WRITABLE |= {"interface": lambda: Foreign(Announced), "dlpack": lambda: Foreign(Exported)}


CYCLES_PER_MS = 2_000_000


def delay(torch, handle, ms=30):
    """Keep a stream busy, so that what is queued behind it is still to come when the next call is made."""
    with torch.cuda.stream(as_torch(torch, handle)):
        torch.cuda._sleep(ms * CYCLES_PER_MS)


def as_torch(torch, handle):
    return torch.cuda.default_stream() if handle in (0, 1) else torch.cuda.ExternalStream(handle)


def captured_while(work, capture):
    """Replay a graph of what `capture` queues, in torch's default mode, while `work` runs in another thread."""
    failures, graph = [], Torch().lib.cuda.CUDAGraph()

    def run():
        try:
            work()
        except BaseException as error:  # reported by the main thread
            failures.append(error)

    gc.collect()  # freeing what another library has left would spoil the capture
    try:
        with Torch().lib.cuda.graph(graph, capture_error_mode="global"):
            capture()
            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            thread.join(60)
    except RuntimeError as spoilt:
        raise (failures[0] if failures else spoilt) from spoilt
    assert not failures, failures[0]
    assert not thread.is_alive()
    graph.replay()
    Torch().lib.cuda.synchronize()
