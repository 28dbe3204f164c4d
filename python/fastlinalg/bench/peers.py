"""The libraries to compare with: NumPy and SciPy on the CPU, CuPy and cuBLAS on a GPU, PyTorch on both.

A peer gets the same operands as our kernels, in the same memory, and writes to the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._check import Array
from .._text import unknown
from .peer import COPY, DeviceOperand, DevicePeer, MissingPeer, Peer, swapped
from .problems import Problem
from .timing import DeviceCall, HostCall


class NumPy(Peer):
    """``numpy.matmul`` and ``numpy.dot``; ``numpy.copyto`` transposes and copies."""

    name = "numpy"
    devices = ("cpu",)

    def multiply(self, a: Array, b: Array, out: Array | None) -> Array:
        product: Array = np.matmul(a, b, out=out)
        return product

    def host_calls(self, problem: Problem, a: Array, b: Array | None, out: Array) -> dict[str, HostCall]:
        if b is None:
            return {self.name: lambda: np.copyto(out, a.T)}
        if problem.op == "sgemm":
            op_a, op_b = swapped(a, problem.trans_a), swapped(b, problem.trans_b)
            return {self.name: lambda: np.matmul(op_a, op_b, out=out)}
        op_a = a.T if problem.trans else a
        return {self.name: lambda: np.dot(op_a, b, out=out)}


class SciPy(Peer):
    """``scipy.linalg.blas``, whose column-major view of a row-major problem is the transposed problem."""

    name = "scipy"
    module = "scipy.linalg.blas"
    devices = ("cpu",)

    def host_calls(self, problem: Problem, a: Array, b: Array | None, out: Array) -> dict[str, HostCall]:
        blas = self.library
        if problem.batch > 1 or not problem.contiguous:  # would be copied
            return {}
        if problem.op == "sgemm":
            at, bt, ct = a.T, b.T, out.T  # type: ignore[union-attr]
            flags = {"trans_a": problem.trans_b, "trans_b": problem.trans_a}
            return {self.name: lambda: blas.sgemm(1.0, bt, at, c=ct, overwrite_c=True, **flags)}
        if problem.op == "sgemv":
            at, trans = a.T, 0 if problem.trans else 1
            return {self.name: lambda: blas.sgemv(1.0, at, b, y=out, trans=trans, overwrite_y=True)}
        return {}


class CuPy(DevicePeer):
    """``cupy.matmul``, and ``cupy.copyto`` for transposes."""

    name = "cupy"
    devices = ("cuda",)

    def multiply(self, a: Array, b: Array, out: Array | None) -> Array:
        cupy = self.library
        result: Array = cupy.asnumpy(cupy.matmul(cupy.asarray(a), cupy.asarray(b)), out=out)
        return result

    def device_calls(
        self, problem: Problem, a: DeviceOperand, b: DeviceOperand | None, out: DeviceOperand
    ) -> dict[str, DeviceCall]:
        cupy = self.library
        first, result = swapped(cupy.asarray(a), problem.trans_a or problem.trans), cupy.asarray(out)
        if b is not None:
            second = swapped(cupy.asarray(b), problem.trans_b)
            return {self.name: self._on_stream(lambda: cupy.matmul(first, second, out=result))}
        calls: dict[str, Callable[[], object]] = {self.name: lambda: cupy.copyto(result, first.T)}
        if problem.contiguous:
            calls[COPY] = self._copy(first, result)
        return {name: self._on_stream(call) for name, call in calls.items()}

    def _copy(self, source: Any, target: Any) -> Callable[[], object]:
        # A kernel, 16 bytes per thread where they divide: a memcpy falls far behind one for large matrices.
        aligned = source.size % 4 == 0 and source.data.ptr % 16 == 0 and target.data.ptr % 16 == 0
        wide = "complex128" if aligned else "float32"
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


class Torch(DevicePeer):
    """``torch.mm``, ``torch.mv`` and ``copy_`` with ``out=``, in full float32."""

    name = "torch"
    devices: tuple[str, ...] = ("cpu", "cuda")

    def __init__(self) -> None:
        super().__init__()
        self.library.set_float32_matmul_precision("highest")  # no TF32

    def set_threads(self, threads: int) -> None:
        self.library.set_num_threads(threads)

    def multiply(self, a: Array, b: Array, out: Array | None) -> Array:
        torch, device = self.library, "cuda" if self.on_gpu else "cpu"
        product = torch.mm(torch.from_numpy(a).to(device), torch.from_numpy(b).to(device))
        if out is not None:
            torch.from_numpy(out).copy_(product)
            return out
        result: Array = product.cpu().numpy()
        return result

    def _calls(self, problem: Problem, a: Any, b: Any, out: Any) -> dict[str, Callable[[], object]]:
        torch = self.library
        if problem.op == "sgemm":
            multiply = torch.mm if problem.batch == 1 else torch.bmm
            first, second = swapped(a, problem.trans_a), swapped(b, problem.trans_b)
            return {self.name: lambda: multiply(first, second, out=out)}
        if problem.op == "sgemv":
            op_a = a.t() if problem.trans else a
            return {self.name: lambda: torch.mv(op_a, b, out=out)}
        if not problem.contiguous:
            return {self.name: lambda: out.copy_(a.t())}
        flat_a, flat_out = a.reshape(-1), out.reshape(-1)
        # neg is a vectorised kernel that moves as much as a copy; copy_ is a memcpy, slower for large ones.
        return {self.name: lambda: out.copy_(a.t()), COPY: lambda: torch.neg(flat_a, out=flat_out)}

    def host_calls(self, problem: Problem, a: Array, b: Array | None, out: Array) -> dict[str, HostCall]:
        tensors = [None if x is None else self.library.from_numpy(x) for x in (a, b, out)]
        calls = self._calls(problem, *tensors)
        calls.pop(COPY, None)  # NumPy's is the one to quote on the host
        return calls

    def device_calls(
        self, problem: Problem, a: DeviceOperand, b: DeviceOperand | None, out: DeviceOperand
    ) -> dict[str, DeviceCall]:
        tensors = [None if x is None else self.library.as_tensor(x, device="cuda") for x in (a, b, out)]
        calls = self._calls(problem, *tensors)
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


class CuBLAS(Torch):
    """``cublasSgemm``, ``cublasSgemmStridedBatched`` and ``cublasSgemv`` in float32 arithmetic, which PyTorch calls for
    ``mm``, ``bmm`` and ``mv`` with ``out=`` and adds nothing to on the device; it knows no transpose of cuBLAS.
    """

    name = "cublas"
    module = "torch"
    devices = ("cuda",)
    multiply = Peer.multiply

    def __init__(self) -> None:
        super().__init__()
        self.library.backends.cuda.preferred_blas_library("cublas")  # not cuBLASLt
        self.version = f"of PyTorch {self.version}"

    def device_calls(
        self, problem: Problem, a: DeviceOperand, b: DeviceOperand | None, out: DeviceOperand
    ) -> dict[str, DeviceCall]:
        return {} if b is None else super().device_calls(problem, a, b, out)


class TF32(CuBLAS):
    """The same products as cuBLAS computes them from operands rounded to TF32, ten bits of mantissa: for the speed that
    giving up float32's error buys.
    """

    name = "tf32"

    def _on_stream(self, call: Callable[[], object]) -> DeviceCall:
        run, allow = super()._on_stream(call), self.library.set_float32_matmul_precision

        def rounded(stream: int) -> None:
            allow("high")
            try:
                run(stream)
            finally:
                allow("highest")

        return rounded


PEERS: dict[str, type[Peer]] = {peer.name: peer for peer in (NumPy, SciPy, CuPy, Torch, CuBLAS, TF32)}
HOST_PEERS = tuple(name for name, peer in PEERS.items() if peer.multiply is not Peer.multiply)


def _made(name: str) -> Peer:
    try:
        return PEERS[name]()
    except ImportError as error:
        raise MissingPeer(f"--against {name}: not installed ({error})") from None


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
            raise MissingPeer(f"--against: {unknown('peer', name, [*PEERS, 'strict'])}")
        if device not in PEERS[name].devices:
            raise MissingPeer(f"--against {name}: does not run on {device}; choose --device {PEERS[name].devices[0]}")
        peers.append(_made(name))
        if threads is not None and device == "cpu":
            peers[-1].set_threads(threads)
    return peers


def load_for_host(names: Iterable[str], on_gpu: bool) -> list[Peer]:
    """As `load`, for whole calls from NumPy to NumPy: on the GPU and back, or on the CPU."""
    peers = []
    for name in names:
        if name not in HOST_PEERS:
            raise MissingPeer(f"--against: {unknown('peer of bench host', name, HOST_PEERS)}")
        if not on_gpu and "cpu" not in PEERS[name].devices:
            raise MissingPeer(f"--against {name}: needs a CUDA device")
        peers.append(_made(name))
        peers[-1].on_gpu = on_gpu
    return peers
