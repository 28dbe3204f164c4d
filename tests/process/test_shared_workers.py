"""Calls that run at the same time share threads: no work is lost or done twice, and none is left behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.cpp_program import build, changed, run
from support.requirements import mostly_exhaustive
from support.source_tree import ROOT

pytestmark = pytest.mark.xdist_group("machine")  # threads that are short of processors meet other races
HERE = Path(__file__).parent
POOL, COPIES, WORKERS = "cpp/runtime/thread_pool.cpp", "cuda/pipeline/host_copies.cpp", "cuda/pipeline/copy_workers.cpp"
FLAGS = ("-O1", "-pthread", f"-I{ROOT}", f"-I{ROOT / 'cpp'}")
MOST_RUNS = 20  # until a fault shows: some are races that one run in a few loses


def compiled(folder: Path, source: Path) -> Path:
    return build(folder / f"{source.stem}.o", ROOT / POOL, *FLAGS, "-c", source, seconds=300)


@pytest.fixture(scope="module")
def objects(tmp_path_factory, around_the_pool) -> dict[str, Path]:
    """What shared_workers.cpp is linked with, by source, and itself."""
    folder = tmp_path_factory.mktemp("objects")
    sources = {name: ROOT / name for name in (POOL, COPIES, WORKERS)} | {"": HERE / "shared_workers.cpp"}
    return {name: compiled(folder, source) for name, source in sources.items()} | {"around": around_the_pool}


def verdict(folder: Path, objects: dict[str, Path], runs: int = 1) -> subprocess.CompletedProcess[str]:
    """Links the program and runs it until it fails."""
    program = build(folder / "shared_workers", ROOT / POOL, "-pthread", *objects.values(), seconds=60)
    for _ in range(runs):
        done = run(program, 200)
        if done.returncode != 0:
            break
    return done


def test_shared_workers(objects, tmp_path):
    done = verdict(tmp_path, objects)
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
    "nobody looks for calls": (POOL, "watches = others_call();", "watches = false;", "a call was left alone"),
    "a helper for each caller": (POOL, "!has_company()", "true", "more threads than there are"),
    "nobody woken to look": (POOL, "else if (nobody_looks()) call(1);", "", "of two calls one was left alone"),
    "a call that does not wait": (POOL, "wait_until([this] { return inside(look()) == 0; });", "", ""),
    "a part lost": (COPIES, "in_left_[number].fetch_sub(1,", "in_left_[number].fetch_sub(2,", ""),
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


@pytest.mark.parametrize("fault", mostly_exhaustive(FAULTS))
def test_a_fault_is_noticed(fault, objects, tmp_path):
    source, right, wrong, complaint = FAULTS[fault]
    faulty = tmp_path / "faulty.cpp"
    faulty.write_text(changed(source, (ROOT / source).read_text(), right, wrong))
    done = verdict(tmp_path, objects | {source: compiled(tmp_path, faulty)}, MOST_RUNS)
    assert done.returncode != 0 and complaint in done.stdout, done.stdout + done.stderr
