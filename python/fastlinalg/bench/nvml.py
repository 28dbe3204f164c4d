"""What NVML, which comes with the driver, says of the GPU that CUDA calls 0. Nothing here imports fastlinalg."""

from __future__ import annotations

import functools
import os
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WATCH_S = 2e-3  # between two readings of the clocks
SM_CLOCK, ON_DIE = 1, 0  # NVML_CLOCK_SM, NVML_TEMPERATURE_GPU


@functools.cache
def _first_gpu() -> tuple[Any, Any] | None:
    """The package nvidia-ml-py and its handle of the device; None without it, a driver or a device."""
    try:
        import pynvml
    except ImportError:
        return None
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]  # NVML counts all devices
    try:
        pynvml.nvmlInit()
        return pynvml, pynvml.nvmlDeviceGetHandleByIndex(int(first) if first.isdigit() else 0)
    except pynvml.NVMLError:
        return None


def _ask(function: str, *which: int) -> Any:
    """What NVML answers; None where it does not."""
    found = _first_gpu()
    if found is None:
        return None
    nvml, gpu = found
    try:
        return getattr(nvml, function)(gpu, *which)
    except nvml.NVMLError:
        return None


def sensors() -> dict[str, float]:
    """``sm_mhz``, ``watts`` and ``celsius`` now; empty where nothing answers."""
    mhz, milliwatts = _ask("nvmlDeviceGetClockInfo", SM_CLOCK), _ask("nvmlDeviceGetPowerUsage")
    if mhz is None or milliwatts is None:
        return {}
    celsius = _ask("nvmlDeviceGetTemperature", ON_DIE) or 0
    return {"sm_mhz": float(mhz), "watts": milliwatts / 1000.0, "celsius": float(celsius)}


@contextmanager
def watched() -> Iterator[dict[str, float]]:
    """What `sensors` says while the block runs, as medians; empty if that is nothing, and until the block ends."""
    seen: list[dict[str, float]] = []
    medians: dict[str, float] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(WATCH_S) and (now := sensors()):
            seen.append(now)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield medians
    finally:
        ended.set()
        watcher.join()
        medians.update({name: statistics.median(now[name] for now in seen) for name in (seen[0] if seen else ())})


def busy_percent() -> int:
    """How much of the last moments kernels were running; 0 where nothing answers."""
    rates = _ask("nvmlDeviceGetUtilizationRates")
    return 0 if rates is None else int(rates.gpu)
