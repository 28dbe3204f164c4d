"""Programs that a test starts, and how long it waits for them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any


def patient(seconds: float) -> float:
    """`seconds`, plenty on a machine of today; FASTLINALG_TEST_PATIENCE=10 makes it ten times as much."""
    return seconds * float(os.environ.get("FASTLINALG_TEST_PATIENCE", "1"))


def resident() -> int:
    """Bytes of this process's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def completed(
    *command: str | Path, status: int = 0, seconds: float = 120, **options: Any
) -> subprocess.CompletedProcess[str]:
    """A program that has ended in time, with this exit status; `options` are those of subprocess.run."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=patient(seconds), check=False, **options)
    settings = {name: value for name, value in options.get("env", {}).items() if name.startswith("FASTLINALG_")}
    said = f"{settings} {command}: exit status {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    assert done.returncode == status, said
    return done
