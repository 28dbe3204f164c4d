"""Runs the cases of ``_cases`` in device memory, between canaries.

NumPy operands always reach the device in a layout that suits the kernels. Here a kernel meets what a caller
with device arrays can give it: padded rows, odd leading dimensions, addresses off a 16-byte boundary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

import fastlinalg as fl

from . import _core
from ._cases import Case
from ._check import CANARY, Array, canaries

GUARD = 64  # floats before and after the data: a multiple of 16 bytes, and more than one vector access


@dataclass(frozen=True)
class Placement:
    """Where operands lie: floats off a 16-byte boundary, and the leading dimension for so many columns.

    Vectors are matrices of one column, whose leading dimension is the increment.
    """

    name: str
    shift: int
    ld: Callable[[int], int]

    @property
    def aligned(self) -> bool:
        return self.name == "aligned"

    def __str__(self) -> str:
        return self.name


PLACEMENTS = (
    Placement("aligned", 0, lambda cols: 1 if cols == 1 else (cols + 3) // 4 * 4 + 4),
    Placement("tight", 0, lambda cols: max(cols, 1)),
    Placement("odd", 0, lambda cols: 3 if cols == 1 else cols + 3 - cols % 2),
    Placement("shifted", 1, lambda cols: 1 if cols == 1 else (cols + 3) // 4 * 4),
)


class GuardedMatrix:
    """A stack of matrices, or of vectors, in device memory. All memory between and around its elements holds canaries.

    Calls get it as an array, by the CUDA array interface; it is computed on the stream that copies are in order with.
    """

    def __init__(self, values: Array, placement: Placement, device: int, vectors: bool = False) -> None:
        batch, rows, cols = values.shape
        self._dims = 2 if vectors else 3
        self.ld = placement.ld(cols)
        self.bs = (rows * self.ld + 3) // 4 * 4
        self._start = GUARD + placement.shift
        self._shape = values.shape
        self._host = canaries(self._start + batch * self.bs + GUARD)
        self._view(self._host)[...] = values
        self._buffer = _core.DeviceBuffer(self._host.nbytes, device)
        self._buffer.upload(self._host)

    def _view(self, flat: Array) -> Array:
        strides = (4 * self.bs, 4 * self.ld, 4)
        return as_strided(flat[self._start :], self._shape, strides)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self._shape[: self._dims],
            "strides": (4 * self.bs, 4 * self.ld, 4)[: self._dims],
            "typestr": "<f4",
            "data": (int(self._buffer.ptr) + 4 * self._start, False),
            "version": 3,
        }

    def unchanged(self) -> bool:
        """Whether every bit is as it was uploaded."""
        now = np.empty_like(self._host)
        self._buffer.download(now)
        return now.tobytes() == self._host.tobytes()

    def result(self) -> tuple[Array, bool]:
        """The elements now, and whether all canaries outside are alive."""
        now = np.empty_like(self._host)
        self._buffer.download(now)
        values = self._view(now).copy()
        self._view(now).view(np.uint32)[...] = CANARY
        return values, bool((now.view(np.uint32) == CANARY).all())


def _stack(x: Array, leading: tuple[int, ...]) -> Array:
    """A 2-D operand as a stack of one; any other with all leading dimensions of the result, joined."""
    if x.ndim == 2:
        return x[None]
    matrix = x.shape[-2:]
    return np.broadcast_to(x, leading + matrix).reshape(int(np.prod(leading)), *matrix)


class Corrupted(AssertionError):
    """A kernel wrote where it must not."""


def run(case: Case, kernel: str | None, placement: Placement, precision: str = "strict", device: int = 0) -> Array:
    """One case in device memory.

    Returns
    -------
    ndarray
        The result, in the shape of ``case.expected.value``.

    Raises
    ------
    ValueError
        With "needs" in the message: the kernel does not take operands that are placed like this.
    Corrupted
        An operand, or memory outside the result, was written.
    """
    shape = case.expected.value.shape
    vector = case.op == "sgemv"
    leading = shape[: -1 if vector else -2]
    columns = [x if x is None or i == 0 or not vector else x[..., None] for i, x in enumerate(case.operands)]
    inputs = [
        GuardedMatrix(_stack(x, leading), placement, device, vectors=vector and i == 1)
        for i, x in enumerate(columns[:2])
        if x is not None
    ]

    target_shape = (int(np.prod(leading)), *((*shape[-1:], 1) if vector else shape[-2:]))
    target = canaries(int(np.prod(target_shape))).reshape(target_shape)
    has_addend = case.options.get("beta", 0.0) != 0.0
    if has_addend:
        target[...] = columns[2].reshape(target_shape)
    out = GuardedMatrix(target, placement, device, vector)

    asked = {"precision": precision} if case.op == "sgemm" else {}
    operands = [*inputs, out] if has_addend else inputs
    getattr(fl, case.op)(*operands, **case.options, **asked, out=out, kernel=kernel)
    values, safe = out.result()
    if not safe:
        raise Corrupted("wrote outside the result")
    if not all(m.unchanged() for m in inputs):
        raise Corrupted("wrote to an operand")
    return values.reshape(shape)
