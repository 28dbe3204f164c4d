"""Several threads that multiply host arrays on one GPU at once: right, and the pinned memory bounded."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg.bench.timing import once
from support.accuracy import assert_same_bits
from support.operands import normal_of as normal
from support.threads import in_threads

pytestmark = pytest.mark.gpu
PINNED_MOST = 256 << 20
SIZES = ((40, 30, 20), (500, 300, 200), (600, 700, 650), (800, 900, 700))


def multiply(a, b, out=None):
    return fl.matmul(a, b, out, device="cuda")


@pytest.fixture(scope="module")
def products():
    pairs = [(normal(m, k), normal(k, n, seed=1)) for m, n, k in SIZES]
    return [(a, b, multiply(a, b)) for a, b in pairs]


@pytest.mark.parametrize("threads", (1, 16))
def test_calls_of_all_sizes_at_once(products, threads):
    most, start = [0], threading.Barrier(4)

    def caller(number):
        start.wait(60)
        for i in range(4):
            a, b, want = products[(number + i) % len(products)]
            out = np.full_like(want, np.nan) if i % 2 else None
            assert_same_bits(multiply(a, b, out), want, f"caller {number}, call {i}")
            most[0] = max(most[0], fl.cuda.memory_info()["pinned"])

    with fl.num_threads(threads):
        in_threads(caller, range(4))
    assert 0 < most[0] <= PINNED_MOST


@pytest.mark.parametrize("memory", ["ordinary", "pinned"])
def test_a_short_call_waits_for_parts_of_a_long_one(memory, cupy):
    """Neither for all of its copies, which a copy engine would take first, nor for all of its products."""
    n, calls = 12288, 6
    make = cupy.cuda.alloc_pinned_memory if memory == "pinned" else bytearray
    a, b, out = (np.frombuffer(make(4 * n * n), np.float32, n * n).reshape(n, n) for _ in range(3))
    a[:], b[:] = np.resize(normal(1000, n), (n, n)), np.resize(normal(999, n), (n, n))
    x, y = normal(256, 256), normal(256, 256, seed=1)
    multiply(a, b, out), multiply(x, y)
    long: list[float] = []
    other = threading.Thread(target=lambda: long.extend(once(lambda: multiply(a, b, out)) for _ in range(calls)))
    other.start()
    short = []
    while other.is_alive():
        short.append(once(lambda: multiply(x, y)))
    assert len(long) == calls
    assert sorted(short)[-3] < min(long) / 2, "all but two"
