"""Whether other programs leave a machine free enough to measure on."""

from __future__ import annotations

import os
import time
from pathlib import Path

from .nvml import busy_percent

WATCH_S = 0.4
MOST_SHARE = 0.05  # of the CPUs that this process may use
MOST_CPUS = 0.2  # and so much of one, however many there are
MOST_GPU_PERCENT = 5


def busy(device: str) -> str:
    """In words what other programs use of the CPUs, and of the GPU if `device` is "cuda"; "" if that is little."""
    found = [_cpus(), _gpu() if device == "cuda" else ""]
    return " and ".join(filter(None, found))


def _cpus() -> str:
    """What runs besides this process on the CPUs that it may use. Nothing is known where there is no /proc/stat."""
    ours = os.sched_getaffinity(0)
    before, own = _busy_ticks(ours), time.process_time()
    if before is None:
        return ""
    begin = time.perf_counter()
    time.sleep(WATCH_S)
    passed, after = time.perf_counter() - begin, _busy_ticks(ours)
    if after is None:
        return ""
    used = (after - before) / os.sysconf("SC_CLK_TCK") - (time.process_time() - own)
    cpus = used / passed
    if cpus <= max(MOST_CPUS, MOST_SHARE * len(ours)):
        return ""
    return f"other programs keep {cpus:.1f} of {len(ours)} CPUs busy"


def _busy_ticks(cpus: set[int]) -> int | None:
    """Clock ticks that these CPUs have spent on anything but waiting."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return None
    total = 0
    for line in lines:
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cpus:
            user, nice, system, _idle, _waiting, irq, softirq, steal = map(int, fields[:8])
            total += user + nice + system + irq + softirq + steal
    return total


def _gpu() -> str:
    """What other processes do on the first GPU, where NVML answers."""
    percent = busy_percent()
    return f"other programs use the GPU {percent} % of the time" if percent > MOST_GPU_PERCENT else ""
