"""Several threads that multiply host arrays on one GPU at once: right, and the pinned memory bounded."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_same_bits
from support.threads import in_threads

pytestmark = pytest.mark.gpu
PINNED_MOST = 256 << 20
SIZES = ((40, 30, 20), (500, 300, 200), (600, 700, 650), (800, 900, 700))


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32)


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
