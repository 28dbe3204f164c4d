"""Where and with what a benchmark ran."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import fastlinalg as fl


def describe(device: str, peak_gflops: float, threads: int) -> dict[str, Any]:
    """The machine as plain data; clocks are added by `Clocks`."""
    cuda = fl.info()["cuda"]
    gpu = fl.devices()[0] if device == "cuda" else None
    return {
        "device": device,
        "cpu": _cpu_model(),
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


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


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


def first_gpu() -> tuple[Any, Any]:
    """NVML's handle of the GPU that CUDA calls 0, and the module; two None where nvidia-ml-py does not answer."""
    try:
        import pynvml

        pynvml.nvmlInit()
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]  # NVML counts all devices
        return pynvml.nvmlDeviceGetHandleByIndex(int(first) if first.isdigit() else 0), pynvml
    except Exception:  # not installed, or no permission: the benchmark does without
        return None, None


WATCH_S = 2e-3  # between two readings of the clocks


class Clocks:
    """SM clock and power of a GPU, where nvidia-ml-py is installed and answers."""

    def __init__(self, device: str) -> None:
        self._handle: Any = None
        self._nvml: Any = None
        if device == "cuda":
            self._handle, self._nvml = first_gpu()

    def sample(self) -> dict[str, float] | None:
        """``sm_mhz`` and ``watts`` now."""
        if self._handle is None:
            return None
        try:
            mhz = self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM)
            return {"sm_mhz": float(mhz), "watts": self._nvml.nvmlDeviceGetPowerUsage(self._handle) / 1000.0}
        except self._nvml.NVMLError:
            return None

    @contextmanager
    def watched(self) -> Iterator[dict[str, float]]:
        """What `sample` says while the block runs, as medians; empty if that is nothing, and until the block ends."""
        seen: list[dict[str, float]] = []
        medians: dict[str, float] = {}
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(WATCH_S) and (now := self.sample()):
                seen.append(now)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield medians
        finally:
            ended.set()
            watcher.join()
            medians.update(
                {name: statistics.median(entry[name] for entry in seen) for name in (seen[0] if seen else ())}
            )
