"""Devices that we do not have: each row of the table of compute capabilities, chips with other numbers of
multiprocessors, slices of one, capabilities that nobody knows yet. Each process has one such device."""

from __future__ import annotations

import json
import re

import pytest

from support.simulated_library import run
from support.source_tree import ROOT, needs_source_tree

pytestmark = needs_source_tree

KNOWN = [
    int(number) for number in re.findall(r"^    \{(\d+), ", (ROOT / "cpp/core/device_spec.h").read_text(), re.MULTILINE)
]
UNKNOWN = [88, 107, 110, 130]

# For calls of all kinds: the kernel chosen, and for each kernel that would take it the estimate.
ASK = """
import json, numpy as np, fastlinalg as fl
from fastlinalg import _core
fl.transpose(np.ones((2, 3), "f4"), device="cuda")  # from now on it is known which code the driver has loaded
calls = []
for m, n, k in ((1, 1, 1), (64, 64, 64), (1024, 1024, 1024), (4096, 4096, 1024), (5000, 7, 300), (3, 4001, 999),
                (100, 100, 60000), (333, 777, 111)):
    for trans in (False, True):
        for precision in ("strict", "accurate"):
            calls.append(("sgemm", m, n, k, 1, trans, not trans, precision))
            calls.append(("sgemm", m, n, k, 3, trans, trans, precision))
for m, n in ((1, 1), (16384, 16), (16, 16384), (4097, 4095), (100000, 300)):
    for trans in (False, True):
        calls += [(op, m, n, 0, 1, trans and op == "sgemv", False, "strict") for op in ("sgemv", "transpose")]
found = [_core.rule_estimates(*call, "cuda") for call in calls]
needs = {op: {row.name: row.needs for row in fl.kernels(op) if row.available} for op in ("sgemm", "sgemv", "transpose")}
print(json.dumps({"calls": calls, "found": found, "needs": needs, "device": fl.devices()[0]}))
"""


def asked(library, **variables) -> dict:
    names = {"cc": "FASTLINALG_SIMULATED_CC", "sms": "FASTLINALG_SIMULATED_SMS"}
    names |= {"memory": "FASTLINALG_SIMULATED_MEMORY_PERCENT", "code": "FASTLINALG_SIMULATED_CODE"}
    return json.loads(run(library, ["-c", ASK], **{names[key]: str(value) for key, value in variables.items()}))


@pytest.fixture(scope="module")
def h200(library):
    return asked(library)


@pytest.mark.parametrize("number", KNOWN + UNKNOWN)
def test_every_call_finds_a_kernel(library, number):
    # The wheel has no code for 7.5; a build for it would.
    answer = asked(library, cc=number, **({"code": 75} if number < 80 else {}))
    major, minor = divmod(number, 10)
    assert answer["device"]["compute_capability"] == f"{major}.{minor}" and answer["device"]["costs_from"] == "h200"
    for call, estimates in zip(answer["calls"], answer["found"], strict=True):
        assert estimates, call
        assert all(0 < us < 1e9 for _, us in estimates), (call, estimates)
    hopper = [needs for kernels in answer["needs"].values() for needs in kernels.values() if needs == "sm_90a"]
    assert bool(hopper) == (number == 90)
    assert ("fp16x2_mma" in answer["needs"]["sgemm"]) == (number >= 80)


def compared(answer: dict, other: dict) -> list[tuple[list, str, float]]:
    """How many times as long each kernel takes on each call of another device."""
    ratios = []
    for call, ours, theirs in zip(answer["calls"], answer["found"], other["found"], strict=True):
        known = dict(theirs)
        ratios += [(call, name, us / known[name]) for name, us in ours if name in known]
    return ratios


def test_fewer_multiprocessors_take_longer(library, h200):
    """An H100 PCIe has 114, a slice of an H200 16 and as much of its memory's speed."""
    pcie, part = asked(library, sms=114, memory=42), asked(library, sms=16, memory=12)
    assert pcie["device"]["sm_count"] == 114 and part["device"]["sm_count"] == 16
    large = [4096, 4096, 1024]
    for answer, least in ((pcie, 1.1), (part, 5.0)):
        ratios = compared(answer, h200)
        # Less of everything never makes a call shorter, but where a kernel finds room for another way to cut it.
        assert sorted(ratio for _, _, ratio in ratios)[len(ratios) // 20] > 0.99
        slower = [ratio for call, name, ratio in ratios if call[1:4] == large and name.startswith("strict_128x")]
        assert slower and min(slower) > least, slower


def test_the_peak_is_that_of_the_capability(library):
    peaks = {number: asked(library, cc=number)["device"]["peak_gflops"] for number in (80, 90)}
    assert peaks[90] == pytest.approx(2 * peaks[80])  # 128 FMAs to 64, at one clock
