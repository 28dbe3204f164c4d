"""FASTLINALG_COMPUTE_CAPABILITY: a device that answers as an older one; what cannot be read, or asked of it, is ignored
and said. On a device: simulated/test_pretended_device.py."""

from __future__ import annotations

import pytest

from fastlinalg import _core

LIMITS = ("shared_per_block", "shared_per_sm", "threads_per_sm", "registers_per_sm")


@pytest.mark.parametrize("text", ["8.0", "80"])
def test_a_newer_device_answers_as_an_older_one(text):
    real, older = _core.testing.pretended(90, ""), _core.testing.pretended(80, "")
    answer = _core.testing.pretended(90, text)
    assert answer["why"] == "FASTLINALG_COMPUTE_CAPABILITY=8.0 is set" and not answer["ignored"]
    assert answer["compute_capability"] == 80 and answer["features"] == older["features"]
    assert all(answer[name] == min(real[name], older[name]) for name in LIMITS)
    assert answer["peak_gflops"] == real["peak_gflops"] != older["peak_gflops"]  # the chip's own


@pytest.mark.parametrize(
    ("real", "wanted"), [(90, 75), (90, 86), (90, 87), (120, 100), (121, 75), (130, 121), (130, 110)]
)
def test_nothing_is_there_that_either_lacks(real, wanted):
    device, pattern = _core.testing.pretended(real, ""), _core.testing.pretended(wanted, "")
    answer = _core.testing.pretended(real, f"{wanted // 10}.{wanted % 10}")
    assert answer["compute_capability"] == wanted
    assert answer["features"] == device["features"] & pattern["features"]
    assert all(answer[name] == min(device[name], pattern[name]) for name in LIMITS)


@pytest.mark.parametrize("text", ["", "9.0", "90"])
def test_nothing_changes_where_the_device_is_that(text):
    answer = _core.testing.pretended(90, text)
    assert answer == _core.testing.pretended(90, "") and not answer["why"] and not answer["ignored"]


@pytest.mark.parametrize("text", ["10.0", "120", "12.1"])
def test_a_newer_one_is_not_pretended(text):
    answer = _core.testing.pretended(90, text)
    phrase = f"FASTLINALG_COMPUTE_CAPABILITY={text} is ignored: GPU has compute capability 9.0"
    assert answer["ignored"].startswith(phrase) and answer["compute_capability"] == 90 and not answer["why"]


@pytest.mark.parametrize(
    "text",
    ["x", "8", "8.", ".8", "8.0a", "sm_80", "-8.0", "8.-1", "7.0", "8,0", " 80", "8.10", "1e9", "99999999999", "\xff"],
)
def test_what_cannot_be_read_is_said(text):
    answer = _core.testing.pretended(90, text)
    assert answer["ignored"].startswith("FASTLINALG_COMPUTE_CAPABILITY=") and "from 7.5 on" in answer["ignored"]
    assert answer["compute_capability"] == 90 and not answer["why"]
