"""Devices that we do not have: each row of the table of compute capabilities, chips with other numbers of
multiprocessors, slices of one, capabilities that nobody knows yet. Each process has one such device."""

from __future__ import annotations

import json
import re

import pytest

from fastlinalg import _core
from support.requirements import mostly_exhaustive
from support.simulation.library import run
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
                (100, 100, 60000), (333, 777, 111), (1, 8192, 8192), (8192, 1, 8192), (4096, 16, 4096),
                (16, 4096, 4096), (3000, 9, 500), (15, 3000, 500), (100000, 33, 17), (64, 64, 65536),
                (0, 5, 5), (5, 5, 0)):
    for trans in (False, True):
        for precision in ("strict", "accurate"):
            calls.append(("sgemm", m, n, k, 1, trans, not trans, precision))
            calls.append(("sgemm", m, n, k, 3, trans, trans, precision))
for m, n, k in ((4, 4, 4), (16, 16, 16), (31, 33, 35), (64, 64, 64)):
    calls += [("sgemm", m, n, k, 5000, False, False, precision) for precision in ("strict", "accurate")]
for m, n in ((1, 1), (16384, 16), (16, 16384), (4097, 4095), (100000, 300), (300, 100000), (777, 3), (2162688, 2)):
    for trans in (False, True):
        calls += [(op, m, n, 0, 1, trans and op == "sgemv", False, "strict") for op in ("sgemv", "transpose")]
found = [_core.rule_estimates(*call, "cuda") for call in calls]
needs = {op: {row.name: row.needs for row in fl.kernels(op) if row.available} for op in ("sgemm", "sgemv", "transpose")}
print(json.dumps({"calls": calls, "found": found, "needs": needs, "device": fl.devices()[0]}))
"""


NAMES = {
    "cc": "FASTLINALG_SIMULATED_CC",
    "sms": "FASTLINALG_SIMULATED_SMS",
    "memory": "FASTLINALG_SIMULATED_MEMORY_PERCENT",
    "code": "FASTLINALG_SIMULATED_CODE",
    "pretended": "FASTLINALG_COMPUTE_CAPABILITY",
}


def asked(library, **variables) -> dict:
    return json.loads(run(library, ["-c", ASK], **{NAMES[key]: str(value) for key, value in variables.items()}))


@pytest.fixture(scope="module")
def h200(library):
    return asked(library)


def code_of_wheels(number: int) -> str:
    """What a driver takes of the release list."""
    text = (ROOT / "cmake" / "CudaArchitectures.cmake").read_text()
    release = re.search(r'set\(FL_RELEASE_ARCHITECTURES "([^"]+)"\)', text)
    target, features = _core.testing.expected_code(release[1].replace(";", " "), number)
    return f"{target}a" if features else str(target)


@pytest.mark.parametrize("number", mostly_exhaustive(KNOWN + UNKNOWN, 75, 80, 90, 120, 130))
def test_every_call_finds_a_kernel(library, number):
    code = code_of_wheels(number)
    assert code != "0", "wheels have no code for it"
    answer = asked(library, cc=number, code=code)
    major, minor = divmod(number, 10)
    assert answer["device"]["compute_capability"] == f"{major}.{minor}" and answer["device"]["costs_from"] == "h200"
    for call, estimates in zip(answer["calls"], answer["found"], strict=True):
        empty = 0 in call[1:3]
        assert bool(estimates) != empty, call
        assert all(0 < us < 1e9 for _, us in estimates), (call, estimates)
    hopper = [needs for kernels in answer["needs"].values() for needs in kernels.values() if needs == "sm_90a"]
    assert bool(hopper) == (number == 90)
    assert ("fp16x2_mma" in answer["needs"]["sgemm"]) == (number >= 80)


# rows.cpp ends the process where a kernel is launched whose body or hardware is not there.
SELF_TEST = """
import sys, numpy as np, fastlinalg as fl
from fastlinalg.cli import main
fl.transpose(np.ones((2, 3), "f4"), device="cuda")
sys.exit(main(["selftest", "--device", "cuda", "--quick", "--every", "40"]))
"""


ONE_OF_EACH = [75, 80, 86, 90, 100, 120, 130]  # by features and shared memory
PRETENDED = ["7.5", "8.0"]


@pytest.mark.parametrize("device", mostly_exhaustive([*ONE_OF_EACH, *PRETENDED], 75, 80, 90, "8.0"))
def test_the_self_test_passes(library, device):
    own = {"cc": str(device), "code": code_of_wheels(device)} if device not in PRETENDED else {"pretended": device}
    said = run(library, ["-c", SELF_TEST], **{NAMES[key]: value for key, value in own.items()})
    passed, total = re.search(r"(\d+) of (\d+) passed", said).groups()
    assert passed == total and int(total) > 20, said


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
