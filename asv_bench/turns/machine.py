"""The machine as its results name it, and the versions beside a build. Needs neither asv nor the repository."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from .rounds import Build

GPU = (
    "import json, fastlinalg as fl\ninfo = fl.info()['cuda']\n"
    "gpu = fl.devices()[0] if fl.cuda.is_available() else {}\n"
    "name = f\"{gpu['name']}, {gpu.get('clock_khz', 0) // 1000} MHz\" if gpu else 'none'\n"
    "print(json.dumps([name, str(info.get('driver') or 'none') if gpu else 'none']))"
)
VERSIONS = (
    "import json, sys, numpy\n"
    "print(json.dumps(['.'.join(map(str, sys.version_info[:2])), '.'.join(numpy.__version__.split('.')[:2])]))"
)


def describe(name: str, build: Build) -> dict[str, str]:
    """What asv writes of a machine, with clocks, and its GPU and driver; "none" where there is no GPU."""
    gpu, driver = _ask(build, GPU)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "machine": name,
        "arch": platform.machine(),
        "cpu": _cpu(),
        "num_cpu": str(os.cpu_count()),
        "ram": f"{round(memory / 2**30)} GiB",
        "os": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "gpu": gpu,
        "driver": driver,
    }


def versions(build: Build) -> tuple[str, str]:
    """Of Python and NumPy, as "3.12" and "2.4"."""
    python, numpy = _ask(build, VERSIONS)
    return python, numpy


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


def _ask(build: Build, code: str) -> Any:
    done = subprocess.run(
        [build.python, "-c", code], env=build.environment(), cwd="/", capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)
