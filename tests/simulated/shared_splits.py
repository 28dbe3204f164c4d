"""What steps of a call share: how often it is split, in how many bits it comes. Run by test_simulated_device.py alone,
with two devices.
"""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_same_bits
from support.operands import normal, numbers


@pytest.mark.parametrize(("devices", "times"), [("cuda:0", 1), (["cuda:0", "cuda:1"], 2)])
def test_each_device_splits_a_line_once(device, rng, devices, times):
    """Of two, each needs all of both operands, half of which come through the other."""
    m, n, k = 3000, 2900, 500
    a, b = normal(rng, m, k), normal(rng, k, n)
    _, steps = _core.testing.panel_plan(m, n, k, 1)
    assert len(steps) > 4
    want = fl.matmul(a, b, device="cuda:0")
    before = device.simulated_lines_prepacked()
    assert_same_bits(fl.matmul(a, b, device=devices), want, devices)
    assert times * (m + n) / 2 < device.simulated_lines_prepacked() - before <= times * (m + n)


@pytest.mark.parametrize("devices", ["cuda:0", "cuda:all"])
@pytest.mark.parametrize("name", ["f2", "bfloat16"])
def test_what_has_16_bits_crosses_the_link_in_as_many(device, rng, name, devices):
    """Once: a device passes it on as float32."""
    m, n, k = 1000, 2900, 500
    a, b = normal(rng, m, k), numbers(name, k, n)
    for right in (b, np.asfortranarray(b), b[::-1, ::-1]):
        before = device.simulated_widened_halves()
        got = fl.matmul(a, right, dtype=np.float32, precision="strict", device=devices)
        assert k * n <= device.simulated_widened_halves() - before < 1.1 * k * n
        want = fl.matmul(a, right.astype(np.float32, order="K"), precision="strict", device=devices)
        assert_same_bits(got, want, (name, devices))
