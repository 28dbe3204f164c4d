"""Where and with what a benchmark ran."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import fastlinalg as fl

from .. import _core


def describe(device: str, peak_gflops: float, threads: int) -> dict[str, Any]:
    """The machine as plain data; clocks are added by `nvml.sensors`."""
    cuda = fl.info()["cuda"]
    gpu = fl.devices()[0] if device == "cuda" else None
    return {
        "device": device,
        "cpu": _core.cpu_name(),
        "cores": os.cpu_count(),
        "threads": threads,
        "os": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "gpu": gpu and gpu["name"],
        "driver": cuda["driver"],
        "runtime": cuda["runtime"],
        "peak_gflops": peak_gflops,
    }


def head(command: Sequence[str], described: dict[str, Any]) -> dict[str, Any]:
    """What a result file says of its run, above the rows."""
    return {
        "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit(),
        "version": fl.__version__,
        "command": shlex.join(command),
        "machine": described,
    }


def commit() -> str | None:
    """``FASTLINALG_COMMIT``, or the commit of the working directory if that is a checkout of fastlinalg."""
    if os.environ.get("FASTLINALG_COMMIT"):
        return os.environ["FASTLINALG_COMMIT"]
    try:
        root = Path(_git("rev-parse", "--show-toplevel"))
        return _git("rev-parse", "HEAD") if (root / "cpp" / "table" / "kernels.def").is_file() else None
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()
