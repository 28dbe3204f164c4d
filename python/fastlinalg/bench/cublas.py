"""cuBLAS itself, through ctypes: what the other libraries call, without what they add.

Nothing here imports fastlinalg: `asv_bench/` takes this module from its checkout.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

WORKSPACE_BYTES = 32 << 20  # what cuBLAS asks for on Hopper

Matrix = tuple[int, int]  # address and leading dimension, row-major
DeviceCall = Callable[[int], object]


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


class Library:
    """Calls of ``cublasSgemm``, ``cublasSgemv`` and ``cublasSgeam`` in float32 arithmetic, alpha 1 and beta 0.

    cuBLAS counts columns first: what is row-major to us is transposed to it. The workspace is the caller's, as one of
    cuBLAS's own would be allocated at a call, which no graph can hold.
    """

    def __init__(self, workspace: int) -> None:
        self._library: Any = _load()
        self._handle, self._workspace = ctypes.c_void_p(), ctypes.c_void_p(workspace)
        self._one, self._zero = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
        self._check(self._library.cublasCreate_v2(ctypes.byref(self._handle)))
        version = ctypes.c_int()
        self._check(self._library.cublasGetVersion_v2(self._handle, ctypes.byref(version)))
        self.version = f"{version.value // 10000}.{version.value // 100 % 100}.{version.value % 100}"

    def _check(self, status: int) -> None:
        if status:
            raise RuntimeError(f"cuBLAS says {status}")

    def _on_stream(self, function: str, *arguments: Any) -> DeviceCall:
        call = getattr(self._library, function)

        def run(stream: int) -> None:
            size = ctypes.c_size_t(WORKSPACE_BYTES)
            self._check(self._library.cublasSetStream_v2(self._handle, ctypes.c_void_p(stream)))
            self._check(self._library.cublasSetWorkspace_v2(self._handle, self._workspace, size))
            self._check(call(self._handle, *arguments))

        return run

    def sgemm(
        self, trans_a: bool, trans_b: bool, m: int, n: int, k: int, a: Matrix, b: Matrix, c: Matrix, batch: int = 1
    ) -> DeviceCall:
        """``c = op(a) op(b)``; the matrices of a batch follow each other."""
        shape = int(trans_b), int(trans_a), n, m, k, self._one
        first, second, result = ((ctypes.c_void_p(ptr), ld) for ptr, ld in (b, a, c))
        if batch == 1:
            return self._on_stream("cublasSgemm_v2", *shape, *first, *second, self._zero, *result)
        next_b, next_a, next_c = (ctypes.c_longlong(size) for size in (k * n, m * k, m * n))
        operands = *first, next_b, *second, next_a, self._zero, *result, next_c
        return self._on_stream("cublasSgemmStridedBatched", *shape, *operands, batch)

    def sgemv(self, trans: bool, m: int, n: int, a: Matrix, x: int, y: int) -> DeviceCall:
        """``y = op(a) x``, a stored as m x n."""
        matrix = int(not trans), n, m, self._one, ctypes.c_void_p(a[0]), a[1]
        return self._on_stream("cublasSgemv_v2", *matrix, ctypes.c_void_p(x), 1, self._zero, ctypes.c_void_p(y), 1)

    def sgeam(self, m: int, n: int, a: Matrix, out: Matrix) -> DeviceCall:
        """``out`` is a, m x n, transposed."""
        result = ctypes.c_void_p(out[0]), out[1]
        matrix = 1, 0, m, n, self._one, ctypes.c_void_p(a[0]), a[1]
        return self._on_stream("cublasSgeam", *matrix, self._zero, *result, *result)
