"""How often the steps of a call split what they share. Run by test_simulated_device.py alone, with two devices."""

from __future__ import annotations

import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_same_bits
from support.operands import normal


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
