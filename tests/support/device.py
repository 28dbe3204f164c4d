"""Operands in device memory, each inside guarded memory: what the GPU tests use in place of NumPy views.

A matrix lies at any leading dimension and at any distance from a 16-byte boundary. What belongs to no element is
a canary, which is a NaN: used in a product it poisons the result.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

import fastlinalg as fl
from fastlinalg import _core

GUARD = 64  # floats in front of and behind the operand
CANARY = np.uint32(0x7FC0DEAD)  # a NaN


class DeviceMatrix:
    """A stack ``(batch, rows, cols)`` in device memory, rows contiguous, or columns if ``transposed``."""

    def __init__(self, values, pad=0, shift=0, transposed=False, gap=0):
        values = np.asarray(values, np.float32)
        stored = values.swapaxes(-1, -2) if transposed else values
        batch, rows, cols = self.shape = stored.shape
        self.transposed = transposed
        self.ld = max(cols, 1) + pad
        self.bs = rows * self.ld + gap
        self.origin = GUARD + shift
        self.host = np.full(self.origin + batch * self.bs + GUARD, CANARY).view(np.float32)
        self.view(self.host)[...] = stored
        self.buffer = _core.DeviceBuffer(self.host.nbytes)
        self.buffer.upload(self.host)

    def view(self, flat):
        return as_strided(flat[self.origin :], self.shape, (4 * self.bs, 4 * self.ld, 4))

    @property
    def ptr(self) -> int:
        return self.buffer.ptr + 4 * self.origin

    @property
    def strides(self) -> tuple[int, int]:
        """Row and column stride of the matrix as the caller sees it."""
        return (1, self.ld) if self.transposed else (self.ld, 1)

    def download(self, context=""):
        """The values on the device, after checking that nothing beside them has changed."""
        now = np.empty_like(self.host)
        self.buffer.download(now)
        inside = np.zeros(now.size, bool)
        as_strided(inside[self.origin :], self.shape, (self.bs, self.ld, 1))[...] = True
        changed = np.flatnonzero(~inside & (now.view(np.uint32) != CANARY))
        assert changed.size == 0, (
            f"{context}: {changed.size} floats beside the result were written, "
            f"the first {changed[0] - self.origin:+d} from its origin"
        )
        got = np.array(self.view(now))
        return got.swapaxes(-1, -2) if self.transposed else got


# name -> pad of the leading dimension as a function of the row length, distance from a 16-byte boundary in floats
PLACEMENTS = {
    "aligned": (lambda cols: -cols % 4, 0),
    "aligned_padded": (lambda cols: -cols % 4 + 8, 0),
    "tight": (lambda cols: 0, 0),
    "odd": (lambda cols: 3 - cols % 2, 0),
    "shifted": (lambda cols: -cols % 4, 1),
    "shifted_two": (lambda cols: -cols % 4, 2),
    "odd_shifted": (lambda cols: 1 + cols % 2, 3),
}


def place(values, placement: str, transposed=False, gap=None) -> DeviceMatrix:
    """A stack of matrices in device memory; an aligned one has an aligned batch stride too."""
    values = np.asarray(values, np.float32)
    pad, shift = PLACEMENTS[placement]
    cols = max(values.shape[-2 if transposed else -1], 1)
    return DeviceMatrix(values, pad(cols), shift, transposed, 0 if gap is None else gap)


class Strided:
    """Memory on a device as calls see it: an address, sizes and strides in floats; a stack if there are problems."""

    def __init__(self, ptr, *dims, batch=1, bs=0):
        dims = ((batch, bs), *dims) if batch > 1 else dims
        shape, strides = (tuple(each) for each in zip(*dims, strict=True))
        self.__cuda_array_interface__ = {
            "shape": shape, "strides": tuple(4 * stride for stride in strides), "typestr": "<f4", "data": (ptr, False),
            "version": 3,
        }  # fmt: skip


def device_sgemm(
    kernel, m, n, k, alpha, a, a_rs, a_cs, b, b_rs, b_cs, beta, c, ldc, batch=1, a_bs=0, b_bs=0, c_bs=0,
    precision="strict",
):  # fmt: skip
    """By addresses and strides; on the stream that copies of a DeviceBuffer are in order with, as all of these."""
    left = Strided(a, (m, a_rs), (k, a_cs), batch=batch, bs=a_bs)
    right = Strided(b, (k, b_rs), (n, b_cs), batch=batch, bs=b_bs)
    out = Strided(c, (m, ldc), (n, 1), batch=batch, bs=c_bs)
    added = out if beta else None
    return fl.sgemm(left, right, added, alpha=alpha, beta=beta, out=out, kernel=kernel, precision=precision)


def device_sgemv(kernel, m, n, alpha, a, a_rs, a_cs, x, incx, beta, y, incy, batch=1, a_bs=0, x_bs=0, y_bs=0):
    matrix = Strided(a, (m, a_rs), (n, a_cs), batch=batch, bs=a_bs)
    vector, out = Strided(x, (n, incx), batch=batch, bs=x_bs), Strided(y, (m, incy), batch=batch, bs=y_bs)
    return fl.sgemv(matrix, vector, out if beta else None, alpha=alpha, beta=beta, out=out, kernel=kernel)


def device_transpose(kernel, m, n, a, lda, b, ldb, batch=1, a_bs=0, b_bs=0):
    source = Strided(a, (m, lda), (n, 1), batch=batch, bs=a_bs)
    return fl.transpose(source, Strided(b, (n, ldb), (m, 1), batch=batch, bs=b_bs), kernel=kernel)


def product(name, shape, a, b, c, alpha=1.0, beta=0.0, precision="strict"):
    """What the row of that name makes of C; ``shape`` is m, n, k and the number of problems."""
    m, n, k, batch = shape
    device_sgemm(
        name, m, n, k, alpha, a.ptr, *a.strides, b.ptr, *b.strides, beta, c.ptr, c.ld,
        batch, a.bs, b.bs, c.bs, precision,
    )  # fmt: skip
    return c.download(name)


def on_device(*operands):
    """Arrays whose product is one launch of a row: from host memory it would be several, of smaller products."""
    return [fl.DeviceArray.from_numpy(x) for x in operands]
