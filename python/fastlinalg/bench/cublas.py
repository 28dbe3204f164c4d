"""cuBLAS itself, through ctypes: what the other libraries call, without what they add."""

from __future__ import annotations

import ctypes
import ctypes.util
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .. import _core
from .peer import DeviceOperand, Peer
from .problems import Problem
from .timing import DeviceCall

WORKSPACE_BYTES = 32 << 20  # what cuBLAS asks for on Hopper


def _candidates() -> Iterator[str]:
    """Where the library may be: on the loader's path, or in a package that pip has installed."""
    found = ctypes.util.find_library("cublas")
    if found:
        yield found
    packages = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    yield from map(str, sorted(packages.glob("*/lib/libcublas.so.*"), reverse=True))


def _load() -> ctypes.CDLL:
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError:  # one of its own libraries is missing: another copy may do
            continue
    raise ImportError("libcublas is neither on the loader's path nor in the package nvidia-cublas")


class CuBLAS(Peer):
    """``cublasSgemm``, ``cublasSgemv`` and ``cublasSgeam``, in float32 arithmetic."""

    name = "cublas"
    devices = ("cuda",)

    def __init__(self) -> None:
        self.library: Any = _load()
        self._handle = ctypes.c_void_p()
        self._check(self.library.cublasCreate_v2(ctypes.byref(self._handle)))
        version = ctypes.c_int()
        self._check(self.library.cublasGetVersion_v2(self._handle, ctypes.byref(version)))
        self.version = f"{version.value // 10000}.{version.value // 100 % 100}.{version.value % 100}"
        self._workspace = _core.DeviceBuffer(WORKSPACE_BYTES)  # of its own it would allocate, which no graph can hold

    def _check(self, status: int) -> None:
        if status:
            raise RuntimeError(f"cuBLAS says {status}")

    def device_calls(
        self, problem: Problem, a: DeviceOperand, b: DeviceOperand | None, out: DeviceOperand
    ) -> dict[str, DeviceCall]:
        call = {"sgemm": self._sgemm, "sgemv": self._sgemv, "transpose": self._sgeam}[problem.op](problem, a, b, out)
        set_stream, set_workspace = self.library.cublasSetStream_v2, self.library.cublasSetWorkspace_v2
        workspace = ctypes.c_void_p(self._workspace.ptr), ctypes.c_size_t(WORKSPACE_BYTES)

        def run(stream: int) -> None:
            self._check(set_stream(self._handle, ctypes.c_void_p(stream)))
            self._check(set_workspace(self._handle, *workspace))
            self._check(call())

        return {self.name: run}

    # cuBLAS counts columns first: what is row-major to us is transposed to it.
    def _sgemm(self, p: Problem, a: DeviceOperand, b: Any, out: DeviceOperand) -> Callable[[], int]:
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        shape = self._handle, int(p.trans_b), int(p.trans_a), p.n, p.m, p.k, ctypes.byref(one)
        beta = ctypes.byref(zero)
        first, second, result = ((ctypes.c_void_p(x.ptr), x.ld) for x in (b, a, out))
        if p.batch == 1:
            return lambda: self.library.cublasSgemm_v2(*shape, *first, *second, beta, *result)
        strides = [ctypes.c_longlong(size) for size in (p.k * p.n, p.m * p.k, p.m * p.n)]
        return lambda: self.library.cublasSgemmStridedBatched(
            *shape, *first, strides[0], *second, strides[1], beta, *result, strides[2], p.batch
        )

    def _sgemv(self, p: Problem, a: DeviceOperand, b: Any, out: DeviceOperand) -> Callable[[], int]:
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        matrix = self._handle, int(not p.trans), p.n, p.m, ctypes.byref(one), ctypes.c_void_p(a.ptr), a.ld
        vectors = ctypes.c_void_p(b.ptr), 1, ctypes.byref(zero), ctypes.c_void_p(out.ptr), 1
        return lambda: self.library.cublasSgemv_v2(*matrix, *vectors)

    def _sgeam(self, p: Problem, a: DeviceOperand, _: Any, out: DeviceOperand) -> Callable[[], int]:
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        matrix = self._handle, 1, 0, p.m, p.n, ctypes.byref(one), ctypes.c_void_p(a.ptr), a.ld
        result = ctypes.c_void_p(out.ptr), out.ld
        return lambda: self.library.cublasSgeam(*matrix, ctypes.byref(zero), *result, *result)
