"""Faults of GPU kernels, one by one: tools/mutants --cuda.

A fault that is chosen when a kernel runs would change its registers and its time to compile. So each is compiled into
the objects with that file, which are linked with the others of a build without faults, and tried with the tests of the
rows in them: their symbols tell. Each worker has a copy of the sources and of the package.

This file is a plugin of pytest too, which ends the tests when the time for a fault is over.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Lock

NO_CODE = "does not compile"
OVER = "the time for this fault is over"
HANGS = 60  # seconds more than a fault has: the start of the tests, and the longest of them
FOLDERS = ("cpp", "cuda")
ROW = re.compile(r" T fl::(sgemm|sgemv|transpose)_(\w+)\(fl::")
TESTS = {"sgemv": "sgemv|golden|plans_device|device_op", "transpose": "transpose|golden|device_op",
         "sgemm": "(?!sgemv|transpose|plans_device)", "": ""}  # fmt: skip
OF_ALL_ROWS = {"sgemv": ["in_the_cache"], "sgemm": ["have_alone"]}

OF_NO_ROW = {
    "mirrored": "symmetric", "fallback": "bf16x6 or accurate_long", "copy_triangle": "ssyrk",
    "launch.cu": "k8c2 or fp16x2 or any_rows", "sgemm_accurate": "accurate or fp16x2 or bf16x6",
    "split_k": "splits or tall_skinny or slice_k or accurate", "": "",
}  # fmt: skip
FIRST = ("_golden.py", "_full_tiles.py", "_device_operands.py", "_sgemm.py", "_accurate.py", "_on_device.py")
HUGE = "test_huge.py"  # of numbers in 32 bits


class Build:
    """How its objects and its library are made."""

    def __init__(self, root: Path, folder: Path):
        self.root, self.folder = root.resolve(), folder
        said = subprocess.run(["ninja", "-C", folder, "-t", "compdb", "-x"], stdout=subprocess.PIPE, check=True).stdout
        entries = json.loads(said[said.index(b"[\n") :])
        self.objects = {entry["file"]: entry for entry in entries if entry["output"].endswith(".cu.o")}
        self.library = next(e for e in entries if re.fullmatch(r"libfastlinalg\.so[\d.]*", e["output"]))

    def objects_with(self, file: str) -> list[dict]:
        path, name = str(self.root / file), f'/{Path(file).name}"'
        users = [path] if path in self.objects else [p for p in self.objects if name in Path(p).read_text()]
        return [self.objects[user] for user in sorted(users)]


class Worker:
    def __init__(self, build: Build, site: Path, folder: Path):
        self.build, self.folder = build, folder
        shutil.rmtree(folder, ignore_errors=True)
        for name in FOLDERS:
            shutil.copytree(build.root / name, folder / name)
        shutil.copytree(site, folder / "site", symlinks=True)
        self.library = next(p for p in folder.rglob("libfastlinalg.so*") if not p.is_symlink())

    def shell(self, command: str) -> bool:
        return not subprocess.run(command, shell=True, cwd=self.build.folder, capture_output=True).returncode

    def make(self, file: str, text: str) -> list[tuple[str, str]] | None:
        """The library with this text of a file. The rows in it, or None if it does not compile."""
        source, link, rows = self.folder / file, self.build.library["command"], list[tuple[str, str]]()
        before, made = source.read_text(), True
        source.write_text(text)
        for number, entry in enumerate(self.build.objects_with(file)):
            changed = self.folder / f"changed-{number}.o"
            made = made and self.shell(self.here(entry["command"].replace(entry["output"], str(changed))))
            link = link.replace(f" {entry['output']} ", f" {changed} ")
            symbols = subprocess.run(["nm", "-C", changed], capture_output=True, text=True).stdout
            rows += ROW.findall(symbols)
        source.write_text(before)
        self.library.unlink(missing_ok=True)
        if not made or not self.shell(link.replace(f"-o {self.build.library['output']}", f"-o {self.library}")):
            return None
        return rows

    def here(self, command: str) -> str:
        for name in FOLDERS:
            command = command.replace(f"{self.build.root}/{name}", f"{self.folder}/{name}")
        return re.sub(rf"-I{self.build.root}(?= )", f"-I{self.folder}", command)


class Tests:
    def __init__(self, root: Path, environment: dict[str, str], seconds: float, only: str):
        self.root, self.environment, self.seconds = root, environment, seconds
        found = [path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py")]
        folders = "tests/(kernels|symmetric|reproducible|plans/test_plans_device|api/test_grouped)"
        wanted = [path for path in found if re.match(folders, path) and re.search(only, path)]
        self.files = sorted(wanted, key=lambda path: ([not path.endswith(first) for first in FIRST], path))
        self.failing, self.lock = dict[str, bool](), Lock()  # without a fault
        self.memory = Lock()  # for half of the device's

    def run(self, site: Path, *arguments: str) -> tuple[str, str]:
        """The outcome, and the first test that failed."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "gpu_mutants", "-p", "no:cacheprovider",
                   "-m", "gpu", "-rf", "--tb=no", *arguments]  # fmt: skip
        path = [str(site), str(Path(__file__).parent), self.environment.get("PYTHONPATH", "")]
        variables = {
            "PYTHONPATH": os.pathsep.join(filter(None, path)), "MUTANTS_SECONDS": str(self.seconds),
            "FASTLINALG_REQUIRE": "cuda", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OPENBLAS_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        try:
            done = subprocess.run(
                command, cwd=self.root, env=self.environment | variables, timeout=self.seconds + HANGS,
                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "killed", "time limit"
        if done.returncode in (0, 5) or OVER in done.stdout:
            return "survived" if done.returncode != 5 else "not reached", ""
        failed = re.search(r"^FAILED (.*?)(?: - .*)?$", done.stdout, re.M)
        return "killed", failed[1] if failed else f"end of the process, {done.returncode}"

    def fails_anyway(self, site: Path, test: str) -> bool:
        with self.lock:
            if test not in self.failing:
                self.failing[test] = self.run(site, test)[0] == "killed"
            return self.failing[test]

    def outcome(self, fault: dict, rows: list[tuple[str, str]], site: Path, pristine: Path) -> tuple[str, str]:
        if fault["kind"] == "width" and rows:
            with self.memory:
                outcome = self.among([f for f in self.files if f.endswith(HUGE)], fault, rows, site, pristine)
            if outcome[0] == "killed":
                return outcome
        operation = rows[0][0] if rows else ""
        pattern = rf"(?!{HUGE})test_({TESTS[operation]})"
        return self.among([f for f in self.files if re.match(pattern, Path(f).name)], fault, rows, site, pristine)

    def among(self, files: list[str], fault: dict, rows: list[tuple[str, str]], site: Path, pristine: Path):
        words = " or ".join(sorted({name for _, name in rows}) + OF_ALL_ROWS.get(rows[0][0] if rows else "", []))
        words = words or next(some for part, some in OF_NO_ROW.items() if part in fault["file"])
        while True:
            known = [word for test, fails in self.failing.items() if fails for word in ("--deselect", test)]
            outcome, by = self.run(site, *(("-k", words) if words else ()), *known, *files)
            if not by.startswith("tests/") or not self.fails_anyway(pristine, by):
                return outcome, by


def attempts(tree, faults: list[dict], environment: dict[str, str], site: Path) -> Iterator[dict]:
    """What became of faults of a tree, as they end."""
    options, build = tree.options, Build(tree.root, tree.root / "build-cuda")
    tests = Tests(tree.root, environment, options.seconds, options.tests)
    idle = [Worker(build, site, tree.work / f"worker-{number}") for number in range(options.jobs)]

    def attempt(fault: dict) -> dict | None:
        if time.time() > options.end:
            return None
        worker, begin = idle.pop(), time.monotonic()
        _, file, mutation = tree.mutations[fault["id"]]
        rows = worker.make(file, mutation.of((tree.root / file).read_text()))
        outcome, by = (NO_CODE, "") if rows is None else tests.outcome(fault, rows, worker.folder / "site", site)
        idle.append(worker)
        took = round(time.monotonic() - begin, 1)
        return fault | {"outcome": outcome, "by": by, "took": took, "environment": "cuda", "rows": rows}

    with ThreadPoolExecutor(options.jobs) as pool:
        for tried in as_completed([pool.submit(attempt, fault) for fault in faults]):
            if record := tried.result():
                yield record


# ---------------------------------------------------------------- the plugin
BEGIN: list[float] = []


def pytest_runtest_protocol(item) -> None:
    BEGIN.append(time.monotonic())
    if BEGIN[-1] - BEGIN[0] > float(os.environ["MUTANTS_SECONDS"]):
        item.session.shouldstop = OVER
