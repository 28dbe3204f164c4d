"""What NVML, which comes with the driver, says of the GPU that CUDA calls 0. Nothing here imports fastlinalg."""

from __future__ import annotations

import ctypes
import functools
import os
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WATCH_S = 2e-3  # between two readings of the clocks
SM_CLOCK, ON_DIE = 1, 0  # NVML_CLOCK_SM, NVML_TEMPERATURE_GPU


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


@functools.cache
def _first_gpu() -> tuple[Any, ctypes.c_void_p] | None:
    """The library and its handle of the device; None where there is no driver or no device."""
    try:
        library: Any = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]  # NVML counts all devices
    gpu = ctypes.c_void_p()
    index = ctypes.c_uint(int(first) if first.isdigit() else 0)
    if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(gpu)):
        return None
    return library, gpu


def _ask(function: str, answer: Any, *which: int) -> bool:
    """Whether NVML has filled in the answer."""
    found = _first_gpu()
    if found is None:
        return False
    library, gpu = found
    return getattr(library, function)(gpu, *map(ctypes.c_int, which), ctypes.byref(answer)) == 0


def sensors() -> dict[str, float]:
    """``sm_mhz``, ``watts`` and ``celsius`` now; empty where nothing answers."""
    mhz, milliwatts, celsius = (ctypes.c_uint() for _ in range(3))
    if not _ask("nvmlDeviceGetClockInfo", mhz, SM_CLOCK) or not _ask("nvmlDeviceGetPowerUsage", milliwatts):
        return {}
    _ask("nvmlDeviceGetTemperature", celsius, ON_DIE)
    return {"sm_mhz": float(mhz.value), "watts": milliwatts.value / 1000.0, "celsius": float(celsius.value)}


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
    share = _Utilization()
    return int(share.gpu) if _ask("nvmlDeviceGetUtilizationRates", share) else 0
