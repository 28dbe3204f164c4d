"""A job of the thread pool keeps to its limits, whoever comes at the same moment: races that calls hardly ever meet.

pool_jobs.cpp includes the pool's source and plays the moments in order.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.cpp_program import build, changed, run
from support.requirements import mostly_exhaustive
from support.source_tree import ROOT

HERE = Path(__file__).parent
POOL = ROOT / "cpp" / "runtime" / "thread_pool.cpp"


def verdict(folder: Path, others: Path, *first: str) -> subprocess.CompletedProcess[str]:
    includes = (*first, f"-I{ROOT / 'cpp'}")
    program = build(folder / "jobs", POOL, "-pthread", *includes, HERE / "pool_jobs.cpp", others, seconds=200)
    return run(program, 100)


def test_jobs(around_the_pool, tmp_path):
    done = verdict(tmp_path, around_the_pool)
    assert done.returncode == 0 and done.stdout == "all right\n", done.stdout + done.stderr


MAY_ENTER = "inside(seen) < std::min(most, Job::most(seen))"
FAULTS = {
    "one too many": (MAY_ENTER, MAY_ENTER.replace("<", "<="), "a second helper enters"),
    "the job's limit": (MAY_ENTER, "inside(seen) < most", "where one may be"),
    "a stale look": (
        "state_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)",
        "(state_.fetch_add(1), true)",
        "that has looked too early",
    ),
    "closed all the same": (
        "state_.fetch_and(~opened, std::memory_order_acq_rel);",
        "",
        "someone enters a closed job",
    ),
    "tasks of the last call": ("next_.store(0, std::memory_order_relaxed);", "", "an open job has no tasks"),
    "a share too large": ("share - Job::inside(seen)", "share", "make a call's share larger"),
    "helpers that go on": (
        "return next_.store(tasks, std::memory_order_relaxed);",
        "return;",
        "a helper goes on with a call that has ended",
    ),
    "done calls": (" || !jobs_[i].has_tasks()", "", "a job without tasks is entered"),
}


@pytest.mark.parametrize("fault", mostly_exhaustive(FAULTS))
def test_a_fault_is_noticed(fault, around_the_pool, tmp_path):
    right, wrong, complaint = FAULTS[fault]
    folder = tmp_path / "runtime"
    folder.mkdir()
    (folder / POOL.name).write_text(changed(POOL.name, POOL.read_text(), right, wrong))
    done = verdict(tmp_path, around_the_pool, f"-I{tmp_path}")
    assert done.returncode == 1 and complaint in done.stdout, done.stdout + done.stderr
