"""Programs in C++ that tests compile from sources of the library, some of them changed, and run."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.patience import patient
from support.requirements import missing
from support.source_tree import TESTS


def changed(source: str, text: str, right: str, wrong: str) -> str:
    """`text`, that of `source`, with `wrong` for `right`, which has to stand there once."""
    assert text.count(right) == 1, f"{source} has changed: {right}"
    return text.replace(right, wrong)


# Of the compiler, for sources that with_faults has changed.
SEEDED = ("-include", str(TESTS / "support" / "seeded_fault.h"))


def with_faults(source: str, text: str, faults: dict[str, tuple[str, ...]]) -> str:
    """`text`, that of `source`, with all of `faults` that are its own: a name, and the source, what is right there and
    what is wrong, a statement or a whole expression, or both in one with SEEDED. A run has one of them or none."""
    places: dict[str, str] = {}
    for number, (where, right, wrong, *_) in enumerate(faults.values(), 1):
        if where == source:
            before, condition = places.get(right, right), f"seeded({number})"
            if "SEEDED" in wrong:
                assert before == right, f"{source}: another fault has this place: {right}"
                places[right] = wrong.replace("SEEDED", condition)
            elif right.endswith(";"):
                places[right] = f"{{ if ({condition}) {{ {wrong} }} else {{ {before} }} }}"
            else:
                places[right] = f"({condition} ? ({wrong}) : ({before}))"
    for right, both in places.items():
        text = changed(source, text, right, both)
    return text


def number(fault: str, faults: dict[str, tuple[str, ...]]) -> int:
    return list(faults).index(fault) + 1


@contextmanager
def common_folder(factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """A folder for all processes of a run (pytest-xdist), by one at a time: the second finds what the first built."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder = root / name
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder.mkdir(exist_ok=True)
        yield folder


def build(program: Path, needed: Path, *arguments: str | Path, seconds: float) -> Path:
    """Compiles `program`; without a compiler, or `needed` of the source tree, the test is skipped or fails."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if not compiler or not needed.exists():
        missing("simulated", f"needs a C++ compiler and the source tree: {compiler}")
    command = [compiler, "-std=c++20", *map(str, arguments), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patient(seconds), check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return program


def weak_symbols(target: Path) -> list[str]:
    """An inline function is one weak symbol with its copies in other objects, of which the linker keeps any."""
    said = subprocess.run(["nm", "-C", "--defined-only", str(target)], capture_output=True, text=True, check=True)
    found = [line for line in said.stdout.splitlines() if re.match(r"[0-9a-f]* *[WVu] ", line)]
    # What catches exceptions has the address of the runtime's handler, which is the same in all objects and no code.
    return [line for line in found if not line.endswith(" DW.ref.__gxx_personality_v0")]


def loaded_library() -> Path:
    """The libfastlinalg.so of this process, wherever the package comes from."""
    with open("/proc/self/maps") as lines:
        return next(Path(line.split(maxsplit=5)[5].strip()) for line in lines if "/libfastlinalg.so" in line)


def run(program: Path, seconds: float, *arguments: str, fault: int = 0) -> subprocess.CompletedProcess[str]:
    """With the fault of this number, of those that the program was built with."""
    environment = os.environ | {"SEEDED_FAULT": str(fault)}
    return subprocess.run(
        [program, *arguments], env=environment, capture_output=True, text=True, timeout=patient(seconds), check=False
    )
