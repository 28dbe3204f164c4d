"""Calls that run at the same time share threads: no work is lost or done twice, and none is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cpp_program import assert_noticed, assert_right, built_with_faults
from support.source_tree import ROOT

pytestmark = pytest.mark.xdist_group("machine")  # threads that are short of processors meet other races
HERE = Path(__file__).parent
POOL, COPIES, WORKERS = "cpp/runtime/thread_pool.cpp", "cuda/pipeline/host_copies.cpp", "cuda/pipeline/copy_workers.cpp"
MOST_RUNS = 20  # until a fault shows: some are races that one run in a few loses
FAULTS = {
    "a task lost": (POOL, "task_(arg_, i, slot);", "if (i != 3) task_(arg_, i, slot);", "a task was lost"),
    "a task run twice": (
        POOL,
        "task_(arg_, i, slot);",
        "for (int n = 0; n < 2; ++n) task_(arg_, i, slot);",
        "a task was run twice",
    ),
    "one slot for all": (POOL, "return inside(seen) + 1;", "return 1;", "two tasks have one slot"),
    "nobody looks for calls": (POOL, "= others_call();", "= !SEEDED && others_call();", "a call was left alone"),
    "a helper for each caller": (POOL, "!has_company()", "true", "more threads than there are"),
    "nobody woken to look": (
        POOL,
        "(nobody_looks())",
        "(!SEEDED && nobody_looks())",
        "of two calls one was left alone",
    ),
    "a call that does not wait": (POOL, "wait_until([this] { return inside(look()) == 0; });", "", ""),
    "a part lost": (COPIES, "left[number].fetch_sub(1,", "left[number].fetch_sub(1 + SEEDED,", ""),
    "an end that does not wait": (
        COPIES,
        "wait_until([&] { return done_.load(std::memory_order_acquire) >= taken; });",
        "",
        "",
    ),
    "an end that is not told": (COPIES, "in_tickets_.close();", "", "a call that is over has something to do"),
    "no turns": (
        WORKERS,
        "if (copy(*calls_[++at_ % count_])) return true;",
        "if (copy(*calls_[i])) return true;",
        "a short call waited for a long one",
    ),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory, around_the_pool) -> Path:
    """shared_workers.cpp with all faults."""
    main, sources = HERE / "shared_workers.cpp", (POOL, COPIES, WORKERS)
    options = ("-O1", "-pthread", f"-I{ROOT}", around_the_pool)
    return built_with_faults(tmp_path_factory, main, sources, FAULTS, *options, seconds=600, compiled=sources)


def test_shared_workers(program):
    assert_right(program, 200)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault, program):
    assert_noticed(program, 200, fault, FAULTS, MOST_RUNS)
