"""Trees for tools/mutants: one is built, the others are its hard links, in which a changed file is compiled and linked.

Ninja would build the copies anew, because all commands name the tree; so its commands are run here, with the other
tree's name in them, for the objects that ninja knows to depend on a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_MEMORY = 64 << 30  # for a fault that asks for ever more
OWN_RPATH = "-Wl,-rpath,'$ORIGIN/lib'"
ROWS = re.compile(r"\bfl::(?:sgemm|sgemv|transpose)_(\w+)\(fl::")  # functions of the kernel table

MADE_UP = re.compile(rb"(N__|_cu_|tmpxft_[0-9a-f]{8}_)[0-9a-f]{8}(-\d+)?")  # by nvcc, of path, content and process


class OutOfTime(Exception):
    pass


@dataclass
class Clock:
    end: float

    def left(self) -> float:
        return self.end - time.monotonic()


def run(command, clock: Clock, seconds: float = 1e9, **options) -> tuple[int, str]:
    """Exit status and output; 124 after so many seconds, with all that it has started ended."""
    done = subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, errors="replace",
        **options,
    )  # fmt: skip
    try:
        resource.prlimit(done.pid, resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        output = done.communicate(timeout=max(0.1, min(seconds, clock.left())))[0]
        return done.returncode, output
    except subprocess.TimeoutExpired:
        if clock.left() <= 0:
            raise OutOfTime from None
        return 124, ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(done.pid, signal.SIGKILL)
        done.wait()


@dataclass
class Build:
    """What ninja knows of a build folder."""

    folder: str  # in a tree
    commands: dict[str, str] = field(default_factory=dict)  # by output
    users: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # objects of a file of the tree
    seconds: dict[str, float] = field(default_factory=dict)  # of each output

    def read(self, base: Path) -> Build:
        def ninja(*arguments: str) -> str:
            return subprocess.run(["ninja", "-t", *arguments], cwd=folder, capture_output=True, text=True).stdout

        folder = base / self.folder
        self.commands = {entry["output"]: entry["command"] for entry in json.loads(ninja("compdb"))}
        for block in ninja("deps").split("\n\n"):
            target, *sources = block.split("\n    ")
            for source in sources:
                if (path := Path(os.path.normpath(folder / source.strip()))).is_relative_to(base):
                    self.users[path.relative_to(base).as_posix()].append(target.split(":")[0])
        for line in (folder / ".ninja_log").read_text().splitlines()[1:]:
            start, end, _, output, _ = line.split("\t")
            self.seconds[output] = (int(end) - int(start)) / 1000
        return self

    def links(self, objects: set[str]) -> list[str]:
        """The libraries that are made of these objects."""
        libraries = [output for output in self.commands if re.search(r"\.so[\d.]*$", output)]
        return [output for output in libraries if objects & set(self.commands[output].split())]


def rows_of(file: Path) -> list[str]:
    """The kernels of the table that an object defines."""
    symbols = subprocess.run(["nm", "-C", "--defined-only", file], capture_output=True, text=True).stdout
    return sorted(set(ROWS.findall(symbols)))


def code_of(file: Path) -> bytes:
    """What tells an object from one with other code or data."""
    return MADE_UP.sub(b"", file.read_bytes())


# ---------------------------------------------------------------- the first tree
LEFT_OUT = re.compile(r"\.(?!ci$|github$)|build|site|dist$|__pycache__")


def copy_sources(base: Path) -> None:
    """Those that differ from what an earlier run has left there."""
    for folder, folders, files in os.walk(ROOT):
        inner = Path(folder).relative_to(ROOT)
        folders[:] = [name for name in folders if not LEFT_OUT.match(name)]
        (base / inner).mkdir(parents=True, exist_ok=True)
        for name in files:
            source, target = Path(folder) / name, base / inner / name
            if not target.exists() or source.read_bytes() != target.read_bytes():
                target.unlink(missing_ok=True)
                shutil.copyfile(source, target)
                shutil.copymode(source, target)


def make(base: Path, name: str, clock: Clock, *options: str) -> None:
    """The package in site/NAME, from a build in build/NAME."""
    build, site = base / "build" / name, base / "site" / name / "fastlinalg"
    nanobind = subprocess.run([sys.executable, "-m", "nanobind", "--cmake_dir"], capture_output=True, text=True).stdout
    commands = [
        ["cmake", "-S", base, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O2",
         "-DCMAKE_CUDA_FLAGS=-O2 --no-compress", f"-Dnanobind_DIR={nanobind.strip()}",
         f"-DPython_EXECUTABLE={sys.executable}", "-DFASTLINALG_PYTHON=ON", "-DSKBUILD_PROJECT_NAME=fastlinalg",
         *options],
        ["ninja", "-C", build],
        *(["cmake", "--install", build, "--prefix", site, "--component", component]
          for component in ("python", "runtime", "development")),
    ]  # fmt: skip
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(base / "python" / "fastlinalg", site)
    for command in commands:
        status, output = run(command, clock)
        if status:
            raise SystemExit(f"{command}\n{output[-4000:]}")


def make_simulated(base: Path, clock: Clock) -> None:
    program = (
        "import os, pathlib, sys; from support.simulation.library import build_library\n"
        "build_library(pathlib.Path(sys.argv[1]), os.cpu_count())"
    )
    path = os.pathsep.join([str(base / "site" / "cpu"), str(base / "tests")])
    environment = os.environ | {"PYTHONPATH": path + os.pathsep + os.environ.get("PYTHONPATH", "")}
    status, output = run([sys.executable, "-c", program, base / "build" / "simulated"], clock, env=environment)
    if status:
        raise SystemExit(output[-4000:])


# ---------------------------------------------------------------- the others
@dataclass
class Tree:
    root: Path
    base: Path
    job: int
    cores: set[int]
    clock: Clock
    changed: list[Path] = field(default_factory=list)  # in it, against the first tree

    def __post_init__(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        subprocess.run(["cp", "-al", self.base, self.root], check=True)

    def folder(self, name: str) -> Path:
        (self.root / name).mkdir(exist_ok=True)
        return self.root / name

    def run(self, command, seconds: float = 1e9, **options) -> tuple[int, str]:
        return run(command, self.clock, seconds, **options)

    def own(self, path: Path) -> Path:
        """A file of this tree that may be written: no longer that of the others."""
        path.unlink(missing_ok=True)
        self.changed.append(path)
        return path

    def write(self, file: str, text: str) -> None:
        self.own(self.root / file).write_text(text)
        for folder in ("python/fastlinalg", "cpp/include"):  # which are installed
            for site in (self.root / "site").iterdir() if file.startswith(folder) else ():
                inner = Path(file).relative_to(folder)
                self.own(site / "fastlinalg" / ("include" if folder == "cpp/include" else "") / inner).write_text(text)

    def restore(self) -> None:
        for path in self.changed:
            path.unlink(missing_ok=True)
            if (original := self.base / path.relative_to(self.root)).exists():
                os.link(original, path)
        self.changed.clear()

    def compile(self, build: Build, file: str) -> str | None:
        """Build what a changed file is in. "same" if the code is what it was, "no build" if it cannot be compiled."""
        folder, changed = self.root / build.folder, set()
        for output in build.users.get(file, ()):
            status, _ = self.make(build, folder, output)
            if status:
                return "no build"
            if code_of(folder / output) != code_of(self.base / build.folder / output):
                changed.add(output)
        for output in build.links(changed):
            status, _ = self.make(build, folder, output)
            if status:
                return "no build"
            for installed in (self.root / "site").glob(f"{Path(build.folder).name}/fastlinalg/**/{Path(output).name}"):
                shutil.copy2(folder / output, self.own(installed))
        return None if changed else "same"

    def make(self, build: Build, folder: Path, output: str) -> tuple[int, str]:
        self.own(folder / output)
        base = re.escape(str(self.base))
        command = re.sub(f"-Wl,-rpath,{base}[^ ]*", OWN_RPATH, build.commands[output])
        command = re.sub(rf"(?<!\.dir){base}", str(self.root), command)  # .dir/...: the place of an object, from here
        return self.run(command, shell=True, cwd=folder)
