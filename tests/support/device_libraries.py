"""The libraries that own arrays in device memory, behind one interface: put, get, type, and arrays of NaN."""

from __future__ import annotations

import ctypes
import gc
import importlib
import threading

import numpy as np
import pytest

import fastlinalg as fl

F32 = np.float32
# Of the plans in the tests:
WITH_WORKSPACE = 640  # accurate products of this size split their operands into a workspace
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


def view(x, select):
    """What `select` takes of a NumPy array, of a DeviceArray."""
    like = np.empty(x.shape, F32)
    part = select(like)
    begin = x.__cuda_array_interface__["data"][0] + part.ctypes.data - like.ctypes.data
    return Announced(x, shape=part.shape, strides=part.strides, data=(begin, False))


class Exported:
    """The same with DLPack."""

    def __init__(self, x):
        self.owner, self.asked = x, 0

    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()

    def __dlpack__(self, **keywords):
        self.asked += 1
        return self.owner.__dlpack__(**keywords)


# The type of an array as DLPack has it.
CODES = {"float32": (2, 32, 1, 0), "float16": (2, 16, 1, 0), "bfloat16": (4, 16, 1, 0)}


class Placed:
    """A NumPy array of float32, float16 or bfloat16 copied to device memory with its strides, known by DLPack alone.

    What lies lowest comes so many elements behind a boundary of 256 bytes.
    """

    def __init__(self, x, shift=0):
        low = x.ctypes.data + sum(min(0, (n - 1) * step) for n, step in zip(x.shape, x.strides, strict=True))
        high = x.ctypes.data + sum(max(0, (n - 1) * step) for n, step in zip(x.shape, x.strides, strict=True))
        room = np.zeros(-(-(high - low + x.itemsize * (shift + 1)) // 4), F32)
        if x.size:
            elements = (ctypes.c_uint8 * (high - low + x.itemsize)).from_address(low)
            room.view(np.uint8)[shift * x.itemsize :][: len(elements)] = elements
        self.memory = fl.DeviceArray.from_numpy(room)
        begin = self.memory.__cuda_array_interface__["data"][0] + shift * x.itemsize + x.ctypes.data - low
        sizes = (ctypes.c_int64 * x.ndim)(*x.shape), (ctypes.c_int64 * x.ndim)(*(s // x.itemsize for s in x.strides))
        self.parts = *sizes, (ctypes.c_uint8 * 4)(*CODES[x.dtype.name])
        shape, strides, _ = map(ctypes.addressof, self.parts)
        kind = int.from_bytes(self.parts[2], "little")
        # A DLManagedTensor: data, device, dimensions and type, shape, strides, offset, context, deleter
        self.tensor = (ctypes.c_uint64 * 8)(begin, 2, x.ndim | kind << 32, shape, strides, 0, 0, 0)

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **keywords):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


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
