"""A job of the thread pool keeps to its limits, whoever comes at the same moment: races that calls hardly ever meet.

pool_jobs.cpp includes the pool's source and plays the moments in order.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cpp_program import assert_noticed, assert_right, built_with_faults

HERE = Path(__file__).parent
POOL = "cpp/runtime/thread_pool.cpp"

MAY_ENTER = "inside(seen) < std::min(most, Job::most(seen))"
LOOKED = "state_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)"
FAULTS = {
    "one too many": (MAY_ENTER, MAY_ENTER.replace("<", "<="), "a second helper enters"),
    "the job's limit": (MAY_ENTER, "inside(seen) < most", "where one may be"),
    "a stale look": (LOOKED, "(state_.fetch_add(1), true)", "that has looked too early"),
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
    "done calls": ("!jobs_[i].has_tasks()", "false", "a job without tasks is entered"),
}
FAULTS = {name: (POOL, *fault) for name, fault in FAULTS.items()}


@pytest.fixture(scope="module")
def program(tmp_path_factory, around_the_pool) -> Path:
    """pool_jobs.cpp with all faults."""
    options = ("-pthread", around_the_pool)
    return built_with_faults(tmp_path_factory, HERE / "pool_jobs.cpp", [POOL], FAULTS, *options, seconds=200)


def test_jobs(program):
    assert_right(program, 100)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault, program):
    assert_noticed(program, 100, fault, FAULTS)
