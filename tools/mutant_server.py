"""A plugin of pytest for tools/mutants: tests are collected once, and each fault is tried in a child of that process.

MUTANTS_JOB is a file of JSON that says what to do: first a survey of which faults each test reaches, then faults, each
with the tests that reach it. What several such processes do is shared out by files that the first one makes.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from _pytest.mark import Expression, KeywordMatcher
from _pytest.runner import runtestprotocol

JOB = json.loads(Path(os.environ["MUTANTS_JOB"]).read_text())
WORK, PAGE = Path(JOB["work"]), Path(JOB["page"])
SURVEY, RESULTS = WORK / f"survey-{JOB['environment']}.jsonl", WORK / "results.jsonl"
TO_START = 60  # seconds


def file_of(item: str) -> str:
    return item.split("::")[0]


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append(path: Path, record: dict) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(json.dumps(record).encode() + b"\n")


def claim(name: str) -> bool:
    with contextlib.suppress(FileExistsError):
        name = f"{JOB['environment']}-{JOB['round']}-{name.replace('/', '-')}"
        os.close(os.open(WORK / "claims" / name, os.O_CREAT | os.O_EXCL))
        return JOB["end"] > time.time()
    return False


def try_fault(number: int) -> None:
    """From now on, with none reached so far: the page of mutant.h."""
    with PAGE.open("r+b") as page:
        page.write(number.to_bytes(4, "little") + bytes(PAGE.stat().st_size - 4))


def reached() -> list[int]:
    return [number for number, there in enumerate(PAGE.read_bytes()[4:]) if there]


# ---------------------------------------------------------------- in the child
def run_items(items: list[pytest.Item], tried: int, pipe: Connection) -> None:
    for item, following in zip(items, [*items[1:], None], strict=True):
        begin = time.monotonic()
        failed = any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))
        seconds = time.monotonic() - begin
        pipe.send((failed, seconds, reached()))
        if not tried:
            try_fault(0)


def become_child(items: dict[str, pytest.Item], names: list[str], tried: int, fresh: bool, pipe: Connection) -> None:
    """Another program for a fault that is evaluated while tests are collected, and where a device is used, which no
    child of fork can do."""
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_DATA, (JOB["memory"], JOB["memory"]))
        if not fresh:
            run_items([items[name] for name in names], tried, pipe)
            return
        os.set_inheritable(pipe.fileno(), True)
        order = PAGE.with_name(f"{PAGE.name}-order")
        order.write_text(json.dumps([names, tried, pipe.fileno()]))
        command = [sys.executable, "-m", "pytest", *JOB["options"], *dict.fromkeys(map(file_of, names))]
        os.execve(sys.executable, command, os.environ | {"MUTANTS_ORDER": str(order)})
    finally:
        os._exit(0)


# ---------------------------------------------------------------- the server
class Server:
    def __init__(self, session: pytest.Session):
        self.items = {item.nodeid: item for item in session.items}
        self.at_import = set(reached())
        self.flaky: set[str] = set()

    def outcomes(self, names: list[str], tried: int, seconds: dict[str, float]) -> Iterator[dict]:
        """Of tests in a child, until it ends or the caller wants no more."""
        try_fault(tried)
        mine, its = Pipe(duplex=False)
        child = os.fork()
        if not child:
            mine.close()
            become_child(self.items, names, tried, JOB["fresh"] or tried in self.at_import, its)
        its.close()
        try:
            with mine:
                yield from self.heard(mine, names, seconds)
        finally:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError):
                    kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def heard(self, pipe: Connection, names: list[str], seconds: dict[str, float]) -> Iterator[dict]:
        for name in names:
            limit = 15 + 10 * seconds.get(name, 20) + (TO_START if name == names[0] else 0)
            try:
                failed, took, there = pipe.recv() if pipe.poll(limit) else ("time limit", limit, reached())
            except (EOFError, OSError):
                failed, took, there = "end of the process", 0, reached()
            yield {"item": name, "failed": failed, "seconds": took, "reached": there}
            if isinstance(failed, str):
                return

    # ------------------------------------------------------------ which tests reach what
    def survey(self) -> None:
        known, by_file = {record["item"] for record in records(SURVEY)}, defaultdict(list)
        for name in self.items:
            by_file[file_of(name)].append(name)
        for file, names in by_file.items():
            each = 60 if JOB["fresh"] else 8
            for begin in range(0, len(names), each):
                some = [name for name in names[begin : begin + each] if name not in known]
                if some and claim(f"survey-{file}-{begin}"):
                    self.survey_some(some)

    def survey_some(self, names: list[str]) -> None:
        while names:
            for outcome in self.outcomes(names, 0, {}):
                append(SURVEY, outcome)
            names = names[names.index(outcome["item"]) + 1 :]

    # ------------------------------------------------------------ faults
    def faults(self) -> None:
        passing = [record for record in records(SURVEY) if record["item"] in self.items and not record["failed"]]
        for fault in JOB["faults"]:
            anywhere = fault["id"] in self.at_import  # so that any test may notice it
            seconds = {r["item"]: r["seconds"] for r in passing if anywhere or fault["id"] in r["reached"]}
            if claim(f"fault-{fault['id']}"):
                begin = time.monotonic()
                found = self.attempt(fault, seconds) | {"took": round(time.monotonic() - begin, 1)}
                if JOB["end"] > time.time():
                    append(RESULTS, fault | found | {"environment": JOB["environment"], "reaching": len(seconds)})

    def attempt(self, fault: dict, seconds: dict[str, float]) -> dict:
        names, spent = [], 0.0
        for name in self.order(fault, seconds):
            if name not in self.flaky and spent < JOB["budget"]:
                names.append(name)
                spent += seconds[name]
        while names:
            failing = next((each for each in self.outcomes(names, fault["id"], seconds) if each["failed"]), None)
            if not failing:
                break
            name = failing["item"]
            before = names[: names.index(name) + 1]  # it may fail only behind others
            if not any(again["failed"] for again in self.outcomes(before, 0, seconds) if again["item"] == name):
                return {"outcome": "killed", "by": name, "how": failing["failed"], "tests": len(names)}
            self.flaky.add(name)
            names.remove(name)
        return {"outcome": "survived", "by": "", "how": "", "tests": len(names)}

    def order(self, fault: dict, seconds: dict[str, float]) -> list[str]:
        """Those first whose files have noticed most faults of the layer a second, and of each test a case."""
        noticed = Counter(file_of(r["by"]) for r in records(RESULTS) if r["by"] and r["layer"] == fault["layer"])
        seen, places = Counter[str](), {}
        for name in sorted(seconds, key=seconds.__getitem__):
            seen[name.split("[")[0]] += 1
            worth = (0.2 + noticed[file_of(name)]) / (seconds[name] + 0.02)
            places[name] = (seen[name.split("[")[0]] // 3, -worth)
        return sorted(places, key=places.__getitem__)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    server = Server(session)
    if order := os.environ.get("MUTANTS_ORDER"):
        names, tried, pipe = json.loads(Path(order).read_text())
        run_items([server.items[name] for name in names], tried, Connection(pipe, readable=False))
    elif JOB["survey"]:
        server.survey()
    else:
        server.faults()
    return True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On the simulated device: those marked `gpu` whose names fit the words of one of its runs."""

    def fits(item: pytest.Item) -> bool:
        words, own = JOB["wanted"][file_of(item.nodeid).removeprefix("tests/")], KeywordMatcher.from_item(item)
        marked = item.get_closest_marker("gpu") or "simulated/" in item.nodeid
        return bool(marked) and any(not some or Expression.compile(some).evaluate(own) for some in words)

    items[:] = [item for item in items if not JOB["wanted"] or fits(item)]
