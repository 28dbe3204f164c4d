"""No result changes unseen: golden values of how sums are cut and of results' bits (support/golden.py)."""

from __future__ import annotations

import pytest

import fastlinalg as fl
from support import golden
from support.requirements import missing


def test_sums_are_cut_as_they_were():
    """Of the call alone, on every machine: no cost and no description of a device may decide it."""
    want, got = golden.read("plans"), golden.plans()
    for call, kernels in want.items():
        for name, facts in kernels.items():
            assert got[call].get(name) == facts, f"{name}, {call}"


def check(kernel, file: str) -> None:
    wanted = golden.read(file).get(f"{kernel.op} {kernel.name}")
    assert wanted, f"{kernel.name} is not in {file}.json: python -m support.golden {kernel.device} {kernel.name}"
    got = golden.bits_of(kernel)
    assert {case: bits for case, bits in got.items() if bits != wanted.get(case)} == {}


@pytest.mark.parametrize("row", golden.kernels("cpu"), ids=lambda kernel: f"{kernel.op}-{kernel.name}")
def test_bits_on_the_cpu(row):
    check(row, "bits-cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("row", golden.kernels("cuda"), ids=lambda kernel: f"{kernel.op}-{kernel.name}")
def test_bits_on_hopper(row):
    """Some kernels fill the device that is there, so the file is for one number of multiprocessors."""
    device = fl.devices()[0]
    if (device["compute_capability"], device["sm_count"]) != ("9.0", 132):
        missing("h200", f"the bits are those of an H100 SXM or H200, here is {device}")
    check(row, "bits-h200")
