"""What steps of a call share: how often it is split, in how many bits it comes. Run by test_simulated_device.py alone,
with two devices.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_product, assert_same_bits
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


def test_steps_that_split_for_themselves_reserve_nothing_for_shared_splits():
    """Those of few rows and columns, whose terms are their own."""
    m, n, k = 640, 640, 512
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    with fl.Matmul(a, b, kernel="fp16x2", device="cuda") as plan:
        plan.plan()
        room = plan.workspace_bytes + a.nbytes + b.nbytes + 4 * m * n
    fl.cuda.trim()
    before = fl.cuda.memory_info()["reserved"]
    assert (fl.sgemm(a, b, kernel="fp16x2", device="cuda:0") == k).all()
    assert fl.cuda.memory_info()["reserved"] - before <= room


def test_parts_reach_other_devices_without_the_host(device, rng):
    """Where the devices can, and where there is nothing to be copied too."""
    reach = os.environ.get("FASTLINALG_SIMULATED_PEERS") != "0"
    before = device.simulated_copies_without_access()
    for k in (30, 0):
        a, b = normal(rng, 40, k), normal(rng, k, 20)
        x, y = ([fl.DeviceArray.from_numpy(z, f"cuda:{i}") for i, z in enumerate(np.split(z, 2))] for z in (a, b))
        assert_product(np.concatenate([part.numpy() for part in fl.matmul(x, y)]), a, b)
    assert (device.simulated_copies_without_access() == before) == reach


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
