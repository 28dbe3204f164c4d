"""Products in device memory at the first commits: there are no device arrays yet, and `_core` takes pointers.

What a benchmark in device memory needs of `fastlinalg`, with its names. Float32, C order.
"""

import math

import numpy as np

import fastlinalg as fl


class DeviceArray:
    def __init__(self, *shape):
        self.shape = shape
        self._buffer = fl._core.DeviceBuffer(4 * math.prod(shape))
        self.ptr = self._buffer.ptr
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": "<f4", "data": (self.ptr, False), "strides": None, "version": 3,
        }  # fmt: skip

    @classmethod
    def from_numpy(cls, array):
        found = cls(*array.shape)
        found._buffer.upload(array)
        return found

    def numpy(self):
        found = np.empty(self.shape, np.float32)
        self._buffer.download(found)
        return found


def _stack(array):
    """How many matrices, and how many elements from one to the next."""
    if len(array.shape) == 2:
        return 1, 0
    return array.shape[0], math.prod(array.shape[1:])


def sgemm(a, b, *, trans_b=False, out=None, kernel=None, precision="strict", stream=0):
    (m, k), (rows, columns) = a.shape[-2:], b.shape[-2:]
    n, b_strides = (rows, (1, columns)) if trans_b else (columns, (columns, 1))
    (count, a_next), (_, b_next) = _stack(a), _stack(b)
    if out is None:
        out = DeviceArray(*a.shape[:-2], m, n)
    fl._core.device_sgemm(
        kernel, m, n, k, 1.0, a.ptr, k, 1, b.ptr, *b_strides, 0.0, out.ptr, n,
        batch=count, a_bs=a_next, b_bs=b_next, c_bs=_stack(out)[1], precision=precision, stream=stream,
    )  # fmt: skip
    return out


def matmul(a, b, out=None, *, precision="accurate", stream=0):
    return sgemm(a, b, out=out, precision=precision, stream=stream)


def sgemv(a, x, *, trans=False, out=None, kernel=None, stream=0):
    rows, columns = a.shape
    m, n, strides = (columns, rows, (1, columns)) if trans else (rows, columns, (columns, 1))
    if out is None:
        out = DeviceArray(m)
    fl._core.device_sgemv(kernel, m, n, 1.0, a.ptr, *strides, x.ptr, 1, 0.0, out.ptr, 1, stream=stream)
    return out


def transpose(a, out=None, *, kernel=None, stream=0):
    m, n = a.shape
    if out is None:
        out = DeviceArray(n, m)
    fl._core.device_transpose(kernel, m, n, a.ptr, n, out.ptr, m, stream=stream)
    return out
