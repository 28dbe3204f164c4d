"""``fl.ssyrk`` through the GPU: triangles of host arrays, whole results of any arrays."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg._check import written
from support.accuracy import assert_product, assert_same_bits
from support.operands import normal

pytestmark = pytest.mark.gpu
F32 = np.float32


@pytest.mark.parametrize("uplo", [None, "L", "U"])
def test_host_arrays(rng, uplo):
    for shape in ((1, 1), (40, 20), (513, 70), (3, 90, 33)):
        a, n = normal(rng, *shape), shape[-2]
        c = np.where(written(n, uplo), normal(rng, *shape[:-1], n), F32(np.nan))
        for order, beta, trans in product("CF", (0.0, -0.5), (False, True)):
            options = {"alpha": 1.5, "beta": beta, "precision": "strict", "device": "cuda"}
            stored = np.array(a.swapaxes(-1, -2) if trans else a, order=order)
            out = np.array(c, order=order)
            fl.ssyrk(stored, c if beta else None, trans=trans, uplo=uplo, out=out, **options)
            op = stored.swapaxes(-1, -2) if trans else stored
            inside = np.where(written(n, uplo), c, F32(0))
            want = fl.sgemm(op, op.swapaxes(-1, -2), inside if beta else None, out=np.empty_like(out), **options)
            assert_same_bits(out, np.where(written(n, uplo), want, c), f"{shape} {order} beta {beta} trans {trans}")
            assert_product(want, op, op.swapaxes(-1, -2), inside, 1.5, beta)
    numbers = np.arange(12, dtype=np.float64).reshape(3, 4)
    got = fl.ssyrk(numbers, uplo=uplo, dtype=np.float32, device="cuda")
    assert_same_bits(got, np.where(written(3, uplo), numbers @ numbers.T, 0).astype(F32))


def test_arrays_in_device_memory(rng):
    a, c = normal(rng, 60, 40), normal(rng, 60, 60)
    x, y = fl.DeviceArray.from_numpy(a), fl.DeviceArray.from_numpy(c)
    assert_product(fl.ssyrk(x, precision="strict").numpy(), a, a.T)
    assert_product(fl.ssyrk(x, y, alpha=2, beta=0.5, out=y).numpy(), a, a.T, c, 2.0, 0.5)
    for uplo in (None, "L", "U"):
        with pytest.raises(ValueError, match="operands must lie in one place"):
            fl.ssyrk(a, uplo=uplo, out=y)
