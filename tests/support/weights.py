"""Operands in device memory whose splits stay from call to call, as fastlinalg.torch keeps those of weights."""

from __future__ import annotations

import numpy as np

import fastlinalg as fl
from fastlinalg import _core


class Named(_core.Weights):
    """Arrays that say by themselves when they have changed."""

    def __init__(self, *arrays, limit=2**30):
        super().__init__(limit)
        self.stamps = [0] * len(arrays)
        self.arrays = arrays
        begins = [pointer(x) for x in arrays]
        self.watch([(x, x + y.nbytes, i) for i, (x, y) in enumerate(zip(begins, arrays, strict=True))])

    def _stamp(self, owner):
        return self.stamps[owner]


def pointer(x) -> int:
    return x.__cuda_array_interface__["data"][0]


def strides(x, trans=False) -> tuple[int, int]:
    rs, cs = (size // 4 for size in x.strides)
    return (cs, rs) if trans else (rs, cs)


def queue_product(named, a, b, out, stream=0, kernel="fp16x2", trans_a=False, trans_b=False, column_order=False):
    """``out = a @ b`` on a stream; in column order ``out`` is the transposed result."""
    m, k = a.shape[::-1] if trans_a else a.shape
    n = b.shape[0] if trans_b else b.shape[1]
    views = (pointer(a), *strides(a, trans_a), pointer(b), *strides(b, trans_b), pointer(out))
    _core.testing.product_for_tests(named, kernel, m, n, k, *views, *strides(out, column_order), stream)


def product(named, a, b, kernel="fp16x2", trans_a=False, trans_b=False, column_order=False):
    """``a @ b`` in a new array."""
    shape = a.shape[trans_a], b.shape[not trans_b]
    out = fl.DeviceArray.from_numpy(np.full(shape[::-1] if column_order else shape, np.nan, np.float32))
    queue_product(named, a, b, out, 0, kernel, trans_a, trans_b, column_order)
    return out.numpy().T if column_order else out.numpy()
