"""Running ``python -m fastlinalg``."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import shlex
import subprocess
import sys
from unittest import mock

import pytest

from fastlinalg.bench import busy, host, timing
from fastlinalg.cli import main

from .programs import completed

needs_plot = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib")

# The beginning of programs that a fresh interpreter runs: a product, and what it is.
SETUP = (
    "import os, sys, numpy as np, fastlinalg as fl\n"
    "a = np.random.default_rng(0).standard_normal((300, 300), dtype='f4')\n"
    "want = fl.matmul(a, a, device='cpu')\n"
)


def command(line: str, status: int = 0, cwd=None) -> subprocess.CompletedProcess[str]:
    """In a process of its own."""
    command = (sys.executable, "-m", "fastlinalg", *shlex.split(line))
    return checked(completed(*command, status=status, seconds=240, cwd=cwd), line, status)


def here(line: str, status: int = 0, cwd=None) -> subprocess.CompletedProcess[str]:
    """In this process, and `bench` without the rests and the many operands that steady figures, which no test reads."""
    out, err, before = io.StringIO(), io.StringIO(), os.getcwd()
    with (
        mock.patch.dict(vars(timing.AMONG_THREADS), rest_us=0.0, warm_us=0.0),
        mock.patch.object(busy, "WATCH_S", 0.1),
        mock.patch.multiple(host, WARM_S=0.002, ROTATED_BYTES=1 << 20),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            os.chdir(cwd or before)
            code = main(shlex.split(line))
        except SystemExit as end:
            code = end.code
        finally:
            os.chdir(before)
    return checked(subprocess.CompletedProcess(line, code, out.getvalue(), err.getvalue()), line, status)


def checked(done: subprocess.CompletedProcess[str], line: str, status: int) -> subprocess.CompletedProcess[str]:
    assert done.returncode == status, f"{line}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done
