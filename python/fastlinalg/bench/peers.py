"""The libraries to compare with: NumPy and SciPy on the CPU, CuPy on a GPU, PyTorch on both.

A peer gets the same operands as our kernels, in the same memory, and writes to the same result.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._check import Array
from .problems import Problem
from .timing import DeviceCall, HostCall

COPY = "copy"  # beside the transposes: the same bytes in the same order, the limit of what a transpose can reach


class MissingPeer(Exception):
    """A peer was asked for that cannot take part; the message says which and why."""


class Peer:
    """One library.

    Attributes
    ----------
    name, version : str
    devices : tuple of str
        Where it can run: "cpu", "cuda".
    """

    name = ""
    module = ""
    devices: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.library: Any = importlib.import_module(self.module or self.name)
        self.version = str(importlib.import_module(self.name).__version__)

    def set_threads(self, threads: int) -> None:
        """How many CPU threads to use."""
        try:
            import threadpoolctl
        except ImportError:
            raise MissingPeer(
                f"--threads needs threadpoolctl for {self.name}; install with: pip install fastlinalg[bench]"
            ) from None
        threadpoolctl.threadpool_limits(threads, user_api="blas")

    def host_calls(self, problem: Problem, a: Array, b: Array | None, out: Array) -> dict[str, HostCall]:
        """Calls by name of contender; empty if the library has no such operation."""
        raise NotImplementedError


class DevicePeer(Peer):
    """One that also, or only, runs on a CUDA device."""

    _stream: Any = None  # one of the library's own, made at its first use

    def device_calls(self, problem: Problem, a: int, b: int | None, out: int) -> dict[str, DeviceCall]:
        """As `host_calls`, for operands at these addresses in device memory."""
        raise NotImplementedError

    def stream(self) -> int:
        """The address of a stream of the library's own."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait for everything on the device."""
        raise NotImplementedError

    def _event(self) -> Any:
        raise NotImplementedError

    def _milliseconds(self, begin: Any, end: Any) -> float:
        raise NotImplementedError

    def _on_stream(self, call: Callable[[], object]) -> DeviceCall:
        """`call` with the given stream as the library's current one."""
        raise NotImplementedError

    def loop(self, call: DeviceCall, launches: int, replays: int) -> list[float]:
        """Microseconds per call from events around plain launches, after a warm-up."""
        address = self.stream()
        call(address)
        times = []
        for _ in range(replays):
            begin, end = self._event(), self._event()
            begin.record(self._stream)
            for _ in range(launches):
                call(address)
            end.record(self._stream)
            end.synchronize()
            times.append(self._milliseconds(begin, end) * 1e3 / launches)
        return times


class NumPy(Peer):
    """``numpy.matmul`` and ``numpy.dot``; ``numpy.copyto`` transposes and copies."""

    name = "numpy"
    devices = ("cpu",)

    def host_calls(self, problem: Problem, a: Array, b: Array | None, out: Array) -> dict[str, HostCall]:
        if b is None:
            return {self.name: lambda: np.copyto(out, a.T)}
        if problem.op == "sgemm":
            return {self.name: lambda: np.matmul(a, b, out=out)}
        op_a = a.T if problem.trans else a
        return {self.name: lambda: np.dot(op_a, b, out=out)}


class SciPy(Peer):
    """``scipy.linalg.blas``, whose column-major view of a row-major problem is the transposed problem."""

    name = "scipy"
    module = "scipy.linalg.blas"
    devices = ("cpu",)

    def host_calls(self, problem: Problem, a: Array, b: Array | None, out: Array) -> dict[str, HostCall]:
        blas = self.library
        if problem.op == "sgemm":
            at, bt, ct = a.T, b.T, out.T  # type: ignore[union-attr]
            return {self.name: lambda: blas.sgemm(1.0, bt, at, c=ct, overwrite_c=True)}
        if problem.op == "sgemv":
            at, trans = a.T, 0 if problem.trans else 1
            return {self.name: lambda: blas.sgemv(1.0, at, b, y=out, trans=trans, overwrite_y=True)}
        return {}


class DeviceArray:
    """Memory of ours as other libraries read it."""

    def __init__(self, ptr: int, shape: tuple[int, ...]) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": "<f4",
            "data": (ptr, False),
            "strides": None,
            "version": 3,
        }


class CuPy(DevicePeer):
    """``cupy.matmul``, and cuBLAS gemv and geam as CuPy offers them."""

    name = "cupy"
    devices = ("cuda",)

    def device_calls(self, problem: Problem, a: int, b: int | None, out: int) -> dict[str, DeviceCall]:
        cupy = self.library
        matrix = cupy.asarray(DeviceArray(a, problem.a_shape()))
        second = None if b is None else cupy.asarray(DeviceArray(b, problem.b_shape()))
        result = cupy.asarray(DeviceArray(out, problem.out_shape()))
        if problem.op == "sgemm":
            return {self.name: self._on_stream(lambda: cupy.matmul(matrix, second, out=result))}
        cublas = importlib.import_module("cupy.cublas")
        if problem.op == "sgemv":
            trans = "T" if problem.trans else "N"
            return {self.name: self._on_stream(lambda: cublas.gemv(trans, 1.0, matrix, second, 0.0, result))}
        geam = self._on_stream(lambda: cublas.geam("T", "N", 1.0, matrix, 0.0, result, out=result))
        return {self.name: geam, COPY: self._on_stream(self._copy(matrix, result))}

    def _copy(self, source: Any, target: Any) -> Callable[[], object]:
        # A kernel, 16 bytes per thread where they divide: a memcpy falls far behind one for large matrices.
        wide = "complex128" if source.size % 4 == 0 else "float32"
        kernel = self.library.ElementwiseKernel("T x", "T y", "y = x", "fastlinalg_bench_copy")
        flat = source.ravel().view(wide), target.ravel().view(wide)
        return lambda: kernel(*flat)

    def _on_stream(self, call: Callable[[], object]) -> DeviceCall:
        def run(stream: int) -> None:
            with self.library.cuda.ExternalStream(stream):
                call()

        return run

    def stream(self) -> int:
        if self._stream is None:
            self._stream = self.library.cuda.Stream(non_blocking=True)
        return int(self._stream.ptr)

    def synchronize(self) -> None:
        self.library.cuda.runtime.deviceSynchronize()

    def _event(self) -> Any:
        return self.library.cuda.Event()

    def _milliseconds(self, begin: Any, end: Any) -> float:
        return float(self.library.cuda.get_elapsed_time(begin, end))


class Torch(DevicePeer):
    """``torch.mm``, ``torch.mv`` and ``copy_`` with ``out=``, in full float32."""

    name = "torch"
    devices = ("cpu", "cuda")

    def __init__(self) -> None:
        super().__init__()
        self.library.set_float32_matmul_precision("highest")  # no TF32

    def set_threads(self, threads: int) -> None:
        self.library.set_num_threads(threads)

    def _calls(self, problem: Problem, a: Any, b: Any, out: Any) -> dict[str, Callable[[], object]]:
        torch = self.library
        if problem.op == "sgemm":
            return {self.name: lambda: torch.mm(a, b, out=out)}
        if problem.op == "sgemv":
            op_a = a.t() if problem.trans else a
            return {self.name: lambda: torch.mv(op_a, b, out=out)}
        flat_a, flat_out = a.reshape(-1), out.reshape(-1)
        # neg is a vectorised kernel that moves as much as a copy; copy_ is a memcpy, slower for large ones.
        return {self.name: lambda: out.copy_(a.t()), COPY: lambda: torch.neg(flat_a, out=flat_out)}

    def host_calls(self, problem: Problem, a: Array, b: Array | None, out: Array) -> dict[str, HostCall]:
        tensors = [None if x is None else self.library.from_numpy(x) for x in (a, b, out)]
        calls = self._calls(problem, *tensors)
        calls.pop(COPY, None)  # NumPy's is the one to quote on the host
        return calls

    def device_calls(self, problem: Problem, a: int, b: int | None, out: int) -> dict[str, DeviceCall]:
        def tensor(ptr: int, shape: tuple[int, ...]) -> Any:
            return self.library.as_tensor(DeviceArray(ptr, shape), device="cuda")

        second = None if b is None else tensor(b, problem.b_shape())
        calls = self._calls(problem, tensor(a, problem.a_shape()), second, tensor(out, problem.out_shape()))
        return {name: self._on_stream(call) for name, call in calls.items()}

    def _on_stream(self, call: Callable[[], object]) -> DeviceCall:
        def run(stream: int) -> None:
            with self.library.cuda.stream(self.library.cuda.ExternalStream(stream)):
                call()

        return run

    def stream(self) -> int:
        if self._stream is None:
            self._stream = self.library.cuda.Stream()
        return int(self._stream.cuda_stream)

    def synchronize(self) -> None:
        self.library.cuda.synchronize()

    def _event(self) -> Any:
        return self.library.cuda.Event(enable_timing=True)

    def _milliseconds(self, begin: Any, end: Any) -> float:
        return float(begin.elapsed_time(end))


PEERS: dict[str, type[Peer]] = {peer.name: peer for peer in (NumPy, SciPy, CuPy, Torch)}


def load(names: Iterable[str], device: str, threads: int | None) -> list[Peer]:
    """The peers by name.

    Raises
    ------
    MissingPeer
        One that is unknown, not installed, or does not run on this device.
    """
    peers = []
    for name in names:
        if name not in PEERS:
            raise MissingPeer(f"--against {name}: unknown; there are {', '.join(PEERS)}")
        if device not in PEERS[name].devices:
            raise MissingPeer(f"--against {name}: does not run on {device}; choose --device {PEERS[name].devices[0]}")
        try:
            peers.append(PEERS[name]())
        except ImportError as error:
            raise MissingPeer(f"--against {name}: not installed ({error})") from None
        if threads is not None and device == "cpu":
            peers[-1].set_threads(threads)
    return peers
