"""The machine as its results name it, and the versions beside a build. Needs neither asv nor the repository."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from .rounds import Build, asked


def describe(name: str, build: Build) -> dict[str, str]:
    """What asv writes of a machine, with clocks, and its GPU and driver; "none" where there is no GPU."""
    facts = asked(build, {"facts": True})
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "machine": name,
        "arch": platform.machine(),
        "cpu": _cpu(),
        "num_cpu": str(os.cpu_count()),
        "ram": f"{round(memory / 2**30)} GiB",
        "os": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "gpu": facts["gpu"],
        "driver": facts["driver"],
    }


def versions(build: Build) -> tuple[str, str]:
    """Of Python and NumPy, as "3.12" and "2.4"."""
    facts = asked(build, {"facts": True})
    return facts["python"], facts["numpy"]


def _cpu() -> str:
    """The name with family, model and clock, where Linux says them: names of virtual machines' CPUs say little."""
    try:
        lines = [line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line]
    except OSError:
        return platform.processor()
    facts = {name.strip(): value.strip() for name, value in lines}
    name = facts.get("model name", platform.processor())
    if not {"cpu family", "model", "cpu MHz"} <= set(facts):
        return name
    return f"{name}, family {facts['cpu family']} model {facts['model']}, {float(facts['cpu MHz']):.0f} MHz"
