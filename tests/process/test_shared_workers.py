"""Calls that run at the same time share threads: no work is lost or done twice, and none is left behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.cpp_program import build, run
from support.source_tree import ROOT

HERE = Path(__file__).parent
POOL, COPIES, WORKERS = "cpp/runtime/thread_pool.cpp", "cuda/pipeline/host_copies.cpp", "cuda/pipeline/copy_workers.cpp"
OTHERS = ("cpp/runtime/threading.cpp", "cpp/runtime/fork.cpp", "cpp/core/element.cpp")


MOST_RUNS = 20  # until a fault shows: some are races that one run in a few loses


def verdict(folder: Path, replaced: str = "", text: str = "", runs: int = 1) -> subprocess.CompletedProcess[str]:
    """Compiles shared_workers.cpp, with one source of the library replaced, and runs it until it fails."""
    sources = [str(ROOT / name) for name in (POOL, COPIES, WORKERS, *OTHERS) if name != replaced]
    if replaced:
        (folder / "replaced.cpp").write_text(text)
        sources.append(str(folder / "replaced.cpp"))
    flags = ("-O1", "-pthread", f"-I{ROOT}", f"-I{ROOT / 'cpp'}", "-xc++")
    program = build(folder / "shared_workers", ROOT / POOL, *flags, HERE / "shared_workers.cpp", *sources, seconds=300)
    for _ in range(runs):
        done = run(program, 200)
        if done.returncode != 0:
            break
    return done


def test_shared_workers(tmp_path):
    done = verdict(tmp_path)
    assert done.returncode == 0 and done.stdout == "all right\n", done.stdout + done.stderr


FAULTS = {
    "a task lost": (POOL, "task_(arg_, i, slot);", "if (i != 3) task_(arg_, i, slot);", "a task was lost"),
    "a task run twice": (
        POOL,
        "task_(arg_, i, slot);",
        "for (int n = 0; n < 2; ++n) task_(arg_, i, slot);",
        "a task was run twice",
    ),
    "one slot for all": (POOL, "return inside(seen) + 1;", "return 1;", "two tasks have one slot"),
    "a call that does not wait": (POOL, "wait_until([this] { return inside(look()) == 0; });", "", ""),
    "a part lost": (COPIES, "in_left_[number].fetch_sub(1,", "in_left_[number].fetch_sub(2,", ""),
    "a part copied twice": (COPIES, "ticket, ticket + 1,", "ticket, ticket + (ticket != 17),", ""),
    "an end that does not wait": (
        COPIES,
        "wait_until([&] { return done_.load(std::memory_order_acquire) >= taken; });",
        "",
        "",
    ),
    "an end that is not told": (COPIES, "  in_tickets_.close();\n", "", "a call that is over has something to do"),
    "no turns": (
        WORKERS,
        "if (copy(*calls_[++at_ % count_])) return true;",
        "if (copy(*calls_[i])) return true;",
        "a short call waited for a long one",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault, tmp_path):
    source, right, wrong, complaint = FAULTS[fault]
    text = (ROOT / source).read_text()
    assert text.count(right) == 1
    done = verdict(tmp_path, source, text.replace(right, wrong), MOST_RUNS)
    assert done.returncode != 0 and complaint in done.stdout, done.stdout + done.stderr
