"""A device that fails while a call on several runs. Run by test_simulated_device.py alone, with two devices."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_same_bits
from support.operands import normal


@pytest.mark.parametrize("limit", [0, 5 << 20])
@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize("copies", [0, 1, 5, 9])
def test_a_device_that_fails_in_the_midst(device, rng, copies, failing, limit):
    a, b = normal(rng, 1200, 1100), normal(rng, 1100, 1300)
    try:
        for each in (0, 1):
            fl.cuda.set_memory_limit(limit, each)
        want = fl.matmul(a, b, device="cuda:0")
        assert_same_bits(fl.matmul(a, b, device="cuda:all"), want, "before")
        parent = np.full((1202, 1300), 7, np.float32)
        device.simulated_fail(failing, copies)
        with pytest.raises(fl.CudaError, match=rf"sgemm kernel '\w+' on cuda:0,cuda:1: cuda:{failing}: .*ECC"):
            fl.matmul(a, b, parent[1:-1], device="cuda:all")
        assert not device.simulated_still_to_fail()
        device.simulated_synchronize()
        assert (parent[[0, -1]] == 7).all()
        left = parent.copy()
        a *= 2  # nothing reads or writes them any more
        assert_same_bits(fl.matmul(a, b, device="cuda:all"), 2 * want, "the next call")
        assert_same_bits(parent, left, "the result of the call that failed")
        assert all(fl.cuda.memory_info(each)["used"] == 0 for each in (0, 1))
    finally:
        for each in (0, 1):
            fl.cuda.set_memory_limit(0, each)
