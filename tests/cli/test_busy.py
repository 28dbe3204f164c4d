"""Whether a machine is said to be busy when it is, and only then; what bench says of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fastlinalg.bench import busy
from support.command import here
from support.programs import completed

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/stat"), reason="needs /proc/stat")


@pytest.mark.xdist_group("machine")
def test_another_program_is_seen():
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        assert "other programs keep" in busy.busy("cpu")
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def test_a_free_machine_is_not_busy(monkeypatch):
    monkeypatch.setattr(busy, "_busy_ticks", lambda cpus: 1000)
    assert busy.busy("cpu") == ""
    monkeypatch.setattr(busy, "_busy_ticks", lambda cpus: None)  # no such file
    assert busy.busy("cpu") == ""


def test_what_this_process_does_is_not_held_against_it(monkeypatch):
    per_second = os.sysconf("SC_CLK_TCK")
    used = iter((0.0, 0.4))
    ticks = iter((1000, 1000 + round(0.4 * per_second)))
    monkeypatch.setattr(busy, "_busy_ticks", lambda cpus: next(ticks))
    monkeypatch.setattr(busy.time, "process_time", lambda: next(used))
    assert busy.busy("cpu") == ""


LINE = "bench transpose --quick --device cpu --shapes 64x64 --repeats 2 --kernels dispatch"
PROGRAM = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None  # as if it were not installed
from fastlinalg.bench import busy
busy.busy = lambda device: sys.argv[2]
from fastlinalg.cli import main
sys.exit(main(sys.argv[3:]))
"""


def bench(missing: str, others: str) -> subprocess.CompletedProcess[str]:
    return completed(sys.executable, "-c", PROGRAM, missing, others, *LINE.split(), seconds=300)


def test_bench_warns_and_measures_all_the_same():
    done = bench("no_such_module", "other programs keep 3.0 of 4 CPUs busy")
    assert "warning: other programs keep 3.0 of 4 CPUs busy" in done.stderr
    assert "The machine was not free: other programs keep 3.0 of 4 CPUs busy" in done.stdout
    done = bench("no_such_module", "")
    assert "warning" not in done.stderr and "not free" not in done.stdout


def test_bench_is_plain_text_without_rich():
    assert "median us" in bench("rich", "").stdout
    assert "median us" in here(LINE).stdout
