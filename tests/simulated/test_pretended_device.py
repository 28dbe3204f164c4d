"""FASTLINALG_COMPUTE_CAPABILITY on a device: kernels that need more are not there, and it is said why."""

from __future__ import annotations

import functools
import json

import pytest

from support.loaded_code import PROGRAM, answers
from support.requirements import mostly_exhaustive
from support.simulation.library import run
from support.source_tree import needs_source_tree

pytestmark = needs_source_tree

STATE = """
import json, logging, numpy as np, fastlinalg as fl
logging.basicConfig(format="%(levelname)s %(message)s")
fl.matmul(np.ones((600, 600), "f4"), np.ones((600, 600), "f4"), device="cuda")
needs = {row.needs: (row.available, row.reason) for row in fl.kernels("sgemm") if row.device == "cuda"}
print(json.dumps({"device": fl.devices()[0], "missing": fl.info()["cuda"]["missing_code"], "needs": needs}))
"""


@functools.cache
def state(library, wanted: str | None, **variables: str) -> tuple[dict, str]:
    if wanted is not None:
        variables["FASTLINALG_COMPUTE_CAPABILITY"] = wanted
    *warnings, last = sorted(run(library, ["-c", STATE], **variables).splitlines(), key=lambda line: line[:1] == "{")
    return json.loads(last), "\n".join(warnings)


@pytest.mark.parametrize("wanted", ["7.5", "8.0", "8.9"])
def test_kernels_that_need_more_say_why(library, wanted):
    (real, _), (found, warnings) = state(library, None), state(library, wanted)
    said = f"FASTLINALG_COMPUTE_CAPABILITY={wanted} is set"
    device, own = found["device"], real["device"]
    assert device["compute_capability"] == wanted and device["pretended"] == said and not own["pretended"]
    for name in ("name", "sm_count", "clock_khz", "memory", "memory_bytes_per_us", "l2_cache", "peak_gflops"):
        assert device[name] == own[name]
    assert device["shared_per_block"] < own["shared_per_block"]
    assert found["needs"]["cuda"] == [True, ""] and real["needs"]["sm_90a"] == [True, ""]
    available, reason = found["needs"]["sm_90a"]
    assert not available and reason.startswith(said) and "sm_90a" in reason
    assert found["needs"]["sm_80"][0] == (wanted != "7.5")
    # Code for all that is pretended is there, and nothing is wrong.
    assert not found["missing"] and not warnings


DRIVER = """
import fastlinalg as fl
cuda = fl.info()["cuda"]
print(cuda["available"], cuda["driver"], cuda["message"])
"""


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (12080, "supports CUDA up to 12.8 and this build of fastlinalg needs CUDA 13."),
        (0, "no NVIDIA driver was found on this machine"),
    ],
)
def test_a_driver_that_is_too_old_says_its_version(library, driver, words):
    said = run(library, ["-c", DRIVER], FASTLINALG_SIMULATED_DRIVER=str(driver), FASTLINALG_REQUIRE="")
    assert said.startswith(f"False {driver} ") and words in said


def test_a_device_has_the_bandwidth_of_its_memory(library):
    """Which the driver gives as a clock and a width."""
    said = run(library, ["-c", "import fastlinalg as fl; print(fl.devices()[0]['memory_bytes_per_us'])"])
    assert float(said) == pytest.approx(4.8e6, rel=0.01)


@pytest.mark.parametrize(
    ("wanted", "phrase"),
    [("12.0", "can pretend to be an older one only"), ("old", "as 8.0 or 80"), ("8.05", "as 8.0 or 80")],
)
def test_what_is_ignored_is_a_warning(library, wanted, phrase):
    found, warnings = state(library, wanted)
    assert found["device"]["compute_capability"] == "9.0" and phrase in found["device"]["pretended"]
    assert found["needs"]["sm_90a"] == [True, ""]
    said = f"WARNING FASTLINALG_COMPUTE_CAPABILITY={wanted} is ignored"
    assert warnings.count(said) == 1 and phrase in warnings


def test_info_says_so(library):
    program = "from fastlinalg.cli import main; main(['info'])"
    text = run(library, ["-c", program], FASTLINALG_COMPUTE_CAPABILITY="8.0")
    assert "compute capability 8.0 (FASTLINALG_COMPUTE_CAPABILITY=8.0 is set)" in text
    assert "not here: FASTLINALG_COMPUTE_CAPABILITY=8.0 is set" in text


@pytest.mark.parametrize("wanted", mostly_exhaustive(["7.5", "8.0", "8.6"], "8.0"))
def test_every_call_is_right(library, wanted):
    found = answers(run(library, ["-c", PROGRAM], FASTLINALG_COMPUTE_CAPABILITY=wanted))
    assert found["cuda"] == (True, "") and not found["sm_90a"][0] and found["info"] == (True, "")


def test_code_is_that_of_the_real_device(library):
    """A driver takes code for what the device is: of a build for 8.0 alone an H200 runs PTX, whatever it pretends."""
    found, _ = state(library, "8.6", CUDA_FORCE_PTX_JIT="1")
    assert found["needs"]["sm_80"] == [True, ""] and found["missing"] == ""
