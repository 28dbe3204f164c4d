"""Operands of other types on their way to a GPU: the bits of a call on what `astype` makes of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_same_bits
from support.operands import CONVERTED, numbers

pytestmark = pytest.mark.gpu
SHAPES = ((20, 30, 40), (700, 600, 500), (513, 1025, 70), (1, 3000, 500), (3, 2, 100_000))


def as_float32(x):
    return x.astype(np.float32, order="K")


@pytest.mark.parametrize("name", CONVERTED)
def test_types(name):
    a, b = numbers(name, 300, 400), numbers(name, 400, 350, seed=1)
    got = fl.matmul(a, b, dtype=np.float32, precision="strict", device="cuda")
    assert_same_bits(got, fl.matmul(as_float32(a), as_float32(b), precision="strict", device="cuda"))


@pytest.mark.parametrize("m, n, k", SHAPES)
def test_orders_and_one_of_two(m, n, k):
    a, b, c = numbers("f8", m, k), numbers("f2", k, n, seed=1), numbers("i4", m, n, seed=2)
    for a_order, b_order, out_order in product("CF", repeat=3):
        x, y = np.asarray(a, order=a_order), np.asarray(b, order=b_order)
        for left, right in ((x, y), (as_float32(x), y), (x, as_float32(y))):
            got, want = (np.empty((m, n), np.float32, order=out_order) for _ in range(2))
            options = {"alpha": 0.5, "beta": 2.0, "precision": "strict", "device": "cuda"}
            fl.sgemm(left, right, c, out=got, dtype=np.float32, **options)
            fl.sgemm(as_float32(left), as_float32(right), as_float32(c), out=want, **options)
            assert_same_bits(got, want, (a_order, b_order, out_order, left.dtype, right.dtype))


@pytest.mark.parametrize("n", [20, 700])  # in one copy, and by panels
def test_an_overflow_is_reported(n):
    a = np.ones((n, n))
    with np.errstate(over="raise"):
        fl.matmul(a, a, dtype=np.float32, device="cuda")
        a[-1, -1] = 1e300
        with pytest.raises(FloatingPointError, match="overflow encountered in cast"):
            fl.matmul(a, a, dtype=np.float32, device="cuda")


def test_strides_and_batches():
    a = numbers("f8", 4, 3, 200, 310)[:, ::-1, ::2, ::-3]
    b = np.broadcast_to(numbers("i2", 3, 104, 90), (4, 3, 104, 90))
    for x, y in ((a, b), (a[0, 0], b[0]), (a[:, :1], b)):
        got = fl.matmul(x, y, dtype=np.float32, precision="strict", device="cuda")
        want = np.matmul(x.astype(np.float64), y.astype(np.float64))
        assert np.allclose(got, want, rtol=1e-4, atol=1e-3 * np.abs(want).max())


def test_vectors_and_transposes():
    a, x = numbers("f8", 900, 1100), numbers("i8", 1100)
    assert_same_bits(
        fl.matmul(a, x, dtype=np.float32, device="cuda"), fl.matmul(as_float32(a), as_float32(x), device="cuda")
    )
    assert_same_bits(
        fl.matmul(x, a.T, dtype=np.float32, device="cuda"), fl.matmul(as_float32(x), as_float32(a.T), device="cuda")
    )
    assert_same_bits(fl.transpose(a, dtype=np.float32, device="cuda"), as_float32(a).T.copy())
    stack = numbers("bfloat16", 5, 70, 90)
    assert_same_bits(
        fl.transpose(stack, dtype=np.float32, device="cuda"), stack.swapaxes(1, 2).astype(np.float32, order="C")
    )


@pytest.mark.parametrize("types", [("f8", "i2"), ("f2", "bfloat16")], ids=str)
def test_part_by_part(types, limit):
    """What does not fit on the device: tiles begin anywhere in the operands."""
    a, b = numbers(types[0], 1500, 1100), numbers(types[1], 1100, 1300)
    limit(4 << 20)
    got = fl.matmul(a, b, dtype=np.float32, precision="strict", device="cuda")
    want = fl.matmul(as_float32(a), as_float32(b), precision="strict", device="cuda")
    assert_same_bits(got, want)


def test_out_may_lie_in_the_memory_of_an_operand():
    memory = numbers("f8", 600, 600)
    four = as_float32(memory)
    want = fl.matmul(four, four, precision="strict", device="cuda")
    out = memory.view(np.float32).reshape(-1)[-600 * 600 :].reshape(600, 600)
    assert_same_bits(fl.matmul(memory, memory, out=out, dtype=np.float32, precision="strict", device="cuda"), want)
