"""Programs in C++ that tests compile from sources of the library, some of them changed, and run."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.programs import completed, patient
from support.requirements import missing
from support.source_tree import ROOT, TESTS


def changed(source: str, text: str, right: str, wrong: str) -> str:
    """`text`, that of `source`, with `wrong` for `right`, which has to stand there once."""
    assert text.count(right) == 1, f"{source} has changed: {right}"
    return text.replace(right, wrong)


# A name, and the source, what is right there, what is wrong, and what the program then says if that matters.
Faults = dict[str, tuple[str, ...]]
# Of the compiler, for sources that with_faults has changed.
SEEDED = ("-include", str(TESTS / "support" / "seeded_fault.h"))
# And for kernels of a GPU, whose threads have stacks of their own (block_on_host.h).
ON_HOST = (f"-I{TESTS}", "-U_FORTIFY_SOURCE")


def with_faults(source: str, text: str, faults: Faults) -> str:
    """`text`, that of `source`, with all of `faults` that are its own, of which a run has one or none. What is wrong is
    a statement or a whole expression as what is right is, or both in one with SEEDED."""
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


def built_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path, Path], Path]) -> Path:
    """A program in such a folder: by `make`, from the folder and its own path, if it is not there."""
    with common_folder(factory, name) as folder:
        program = folder / name
        return program if program.exists() else make(folder, program)


def build(program: Path, needed: Path, *arguments: str | Path, seconds: float) -> Path:
    """Compiles `program`; without a compiler, or `needed` of the source tree, the test is skipped or fails."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if not compiler or not needed.exists():
        missing("simulated", f"needs a C++ compiler and the source tree: {compiler}")
    command = [compiler, "-std=c++20", *map(str, arguments), "-o", str(program)]
    completed(*command, seconds=seconds)
    return program


def built_with_faults(
    factory: pytest.TempPathFactory,
    main: Path,
    sources: Iterable[str],
    faults: Faults,
    *arguments: str | Path,
    seconds: float,
    empty: Sequence[str] = (),
    edit: Callable[[str], str] = str,
    stand_ins: str = "",
    compiled: Iterable[str] = (),
) -> Path:
    """The program `main` with all faults in its `sources`, which it includes or, those `compiled`, is linked with.

    `empty`: headers that are included for nothing. `stand_ins` is what it includes by that name.
    """

    def make(folder: Path, program: Path) -> Path:
        texts = {source: with_faults(source, edit((ROOT / source).read_text()), faults) for source in sources}
        for source, text in {**texts, **dict.fromkeys(empty, ""), "stand_ins.h": stand_ins}.items():
            place = folder / source.removeprefix("cpp/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        linked = [folder / source.removeprefix("cpp/") for source in compiled]
        options = (*SEEDED, f"-I{folder}", f"-I{ROOT / 'cpp'}", *arguments)
        return build(program, ROOT / "cpp", *options, main, *linked, seconds=seconds)

    return built_once(factory, main.stem, make)


def weak_symbols(target: Path) -> list[str]:
    """An inline function is one weak symbol with its copies in other objects, of which the linker keeps any."""
    said = completed("nm", "-C", "--defined-only", target).stdout
    found = [line for line in said.splitlines() if re.match(r"[0-9a-f]* *[WVu] ", line)]
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


def assert_right(program: Path, seconds: float, *arguments: str) -> None:
    done = run(program, seconds, *arguments)
    assert done.returncode == 0 and done.stdout == "all right\n", done.stdout + done.stderr


def assert_noticed(program: Path, seconds: float, fault: str, faults: Faults, runs: int = 1) -> None:
    """By one of so many runs."""
    for _ in range(runs):
        done = run(program, seconds, fault=list(faults).index(fault) + 1)
        if done.returncode != 0:
            break
    assert done.returncode != 0 and "".join(faults[fault][3:]) in done.stdout, done.stdout + done.stderr
