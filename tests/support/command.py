"""Running ``python -m fastlinalg``."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys

import pytest

from .patience import patient

needs_plot = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib")

# The beginning of programs that a fresh interpreter runs: a product, and what it is.
SETUP = (
    "import os, sys, numpy as np, fastlinalg as fl\n"
    "a = np.random.default_rng(0).standard_normal((300, 300), dtype='f4')\n"
    "want = fl.matmul(a, a, device='cpu')\n"
)
# `bench` without the rests that steady its figures, which no test reads.
BENCH = """
import sys
from fastlinalg.bench import busy, host, timing
from fastlinalg.cli import main
vars(timing.AMONG_THREADS).update(rest_us=0.0, warm_us=0.0)
busy.WATCH_S, host.WARM_S = 0.1, 0.002
sys.exit(main(sys.argv[1:]))
"""


def command(line: str, status: int = 0, cwd=None) -> subprocess.CompletedProcess[str]:
    program = ["-c", BENCH] if line.startswith("bench ") else ["-m", "fastlinalg"]
    done = subprocess.run(
        [sys.executable, *program, *shlex.split(line)],
        capture_output=True,
        text=True,
        timeout=patient(240),
        check=False,
        cwd=cwd,
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    assert done.returncode == status, f"{line}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done
