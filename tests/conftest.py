"""Marks and the rule for hardware that is not there: skip with the reason, unless FASTLINALG_REQUIRE lists it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

os.environ["FASTLINALG_TUNE"] = "off"  # a table of this user's would change which kernels answer

import fastlinalg as fl
from rows import OPERATIONS

ALIASES = {"avx2": "avx2_fma", "avx512": "avx512f"}
HUGE_DEVICE_MEMORY = 40 * 2**30


def required() -> frozenset[str]:
    names = (name.strip() for name in os.environ.get("FASTLINALG_REQUIRE", "").split(","))
    return frozenset(ALIASES.get(name, name) for name in names if name)


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a CUDA device")
    config.addinivalue_line("markers", "gpu2: needs two CUDA devices; FASTLINALG_REQUIRE=cuda2 demands them")
    config.addinivalue_line("markers", "huge: needs a CUDA device with 40 GiB of free memory")
    known = {"avx2_fma", "avx512f", "cuda", "cuda2", "simulated", "sm_80", "sm_90a"} | {
        row.needs for op in OPERATIONS for row in fl.kernels(op)
    }
    if unknown := required() - known:
        raise pytest.UsageError(f"FASTLINALG_REQUIRE lists {sorted(unknown)}; known are {sorted(known)}")


def pytest_report_header(config):
    info = fl.info()
    cpu, cuda = info["cpu"], info["cuda"]
    return [
        f"fastlinalg {fl.__version__} from {Path(fl.__file__).parent}; cpu {cpu['isa']}, {cpu['threads']} threads",
        f"cuda: {'available' if cuda['available'] else cuda['message']}; required: {', '.join(required()) or 'none'}",
    ]


def missing(needs: str, reason: str) -> None:
    """Skip, or fail where the missing thing was required."""
    if needs in required() or (needs.startswith("sm_") and "cuda" in required() and not fl.cuda.is_available()):
        pytest.fail(f"FASTLINALG_REQUIRE lists it, but: {reason}", pytrace=False)
    pytest.skip(reason)


def pytest_runtest_setup(item):
    if (item.get_closest_marker("gpu") or item.get_closest_marker("huge")) and not fl.cuda.is_available():
        missing("cuda", f"no CUDA device: {fl.info()['cuda']['message']}")
    if item.get_closest_marker("gpu2") and len(fl.devices()) < 2:
        missing("cuda2", f"needs two CUDA devices, there are {len(fl.devices())}")
    if item.get_closest_marker("huge") and fl.cuda.memory_info()["free"] < HUGE_DEVICE_MEMORY:
        pytest.skip("needs 40 GiB of free device memory")
    row = getattr(item, "callspec", None) and item.callspec.params.get("row")
    if row is not None and not row.available:
        missing(row.needs, f"{row.name} needs {row.needs}: {row.reason}")


@pytest.fixture
def rng():
    return np.random.default_rng(20240229)


@pytest.fixture
def python():
    """Run a program in a fresh interpreter; the caller may ask for another environment or exit status."""

    def run(program: str, *args: str, status: int = 0, timeout: float = 120, **environment: str) -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("FASTLINALG_")}
        done = subprocess.run(
            [sys.executable, "-c", program, *args],
            env=env | environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """The variables of a process with a cache folder of its own, and where its tuning table would be."""
    monkeypatch.delenv("FASTLINALG_TUNE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "fastlinalg").mkdir()
    return dict(os.environ), tmp_path / "fastlinalg" / "tuning.json"
