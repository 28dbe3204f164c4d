"""Operands in device memory, each inside guarded memory: what the GPU tests use in place of NumPy views.

A matrix lies at any leading dimension and at any distance from a 16-byte boundary. What belongs to no element is
a canary, which is a NaN: used in a product it poisons the result. Calls on them are on the stream that copies of a
DeviceBuffer are in order with.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

import fastlinalg as fl
from fastlinalg import _core
from support.device_libraries import Announced

GUARD = 64  # floats in front of and behind the operand
CANARY = np.uint32(0x7FC0DEAD)  # a NaN


class Strided:
    """Memory on a device as calls see it: an address, sizes, and strides in floats, by default those of C order."""

    def __init__(self, ptr, shape, strides=None):
        strides = strides and tuple(4 * stride for stride in strides)
        data = {"shape": shape, "strides": strides, "typestr": "<f4", "data": (ptr, False)}
        self.__cuda_array_interface__ = data | {"version": 3}


class DeviceMatrix:
    """A stack ``(batch, rows, cols)`` in device memory, rows contiguous, or columns if ``transposed``; an array for
    calls."""

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
    def __cuda_array_interface__(self):
        (batch, rows, cols), (down, across) = self.shape, (self.ld, 1)
        if self.transposed:
            rows, cols, down, across = cols, rows, across, down
        return Strided(self.ptr, (batch, rows, cols), (self.bs, down, across)).__cuda_array_interface__

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


def vectors(x: DeviceMatrix, backwards=False):
    """A stack of matrices with one column as vectors, which are read from their ends if ``backwards``."""
    batch, n, _ = x.shape
    begin, step = (x.ptr + 4 * max(n - 1, 0) * x.ld, -x.ld) if backwards else (x.ptr, x.ld)
    return Announced(x, shape=(batch, n), strides=(4 * x.bs, 4 * step), data=(begin, False))


def product(name, a, b, c, alpha=1.0, beta=0.0, precision="strict"):
    """What the row of that name makes of C."""
    added = c if beta else None
    fl.sgemm(a, b, added, alpha=alpha, beta=beta, out=c, kernel=name, precision=precision)
    return c.download(name)


def assign(array, values):
    """Change the values of a device array in place."""
    fl.transpose(fl.DeviceArray.from_numpy(np.ascontiguousarray(np.swapaxes(values, -1, -2))), out=array)


def on_device(*operands):
    """Arrays whose product is one launch of a row: from host memory it would be several, of smaller products."""
    return [fl.DeviceArray.from_numpy(x) for x in operands]
