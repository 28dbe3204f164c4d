"""Builds take turns, case by case, each in a process of its own that lives for a round.

Where operands and code lie in memory makes up to a tenth of a difference that stays for as long as a process does, so
a sample is a process. Within a round the builds measure a case one right after the other, and again where the clock of
the GPU moved between them (`fastlinalg.bench.turns`, of this checkout); every other round goes backwards.
"""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import benchmarks  # noqa: F401  lets `bench` be imported
from bench.turns import take_turns as one_case

from .cases import Case

CHILD = Path(__file__).with_name("child.py")
SAVE_S = 10
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Build:
    """A folder that has `fastlinalg/` in it, unpacked from a wheel, and the interpreter that imports it."""

    label: str
    site: Path
    python: str = sys.executable

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return kept | {"PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass
class Samples:
    """What one build answered for one case: a value for each round, or None, and why there is none."""

    values: list[float | None] = field(default_factory=list)
    reason: str = ""
    states: list[dict[str, float]] = field(default_factory=list)  # of the GPU: clock, power, temperature

    def add(self, answer: dict[str, Any]) -> None:
        self.values.append(answer.get("value"))
        self.reason = answer.get("skipped") or answer.get("failed") or self.reason
        if "state" in answer:
            self.states.append(answer["state"])

    @property
    def known(self) -> list[float]:
        return [value for value in self.values if value is not None]

    @property
    def mhz(self) -> float | None:
        """The SM clock meanwhile, where it is known."""
        known = [state["sm_mhz"] for state in self.states if "sm_mhz" in state]
        return statistics.median(known) if known else None


Table = list[dict[Case, Samples]]  # one for each build


def logs_of(base: Samples, head: Samples) -> list[float]:
    """The logarithm of head over base in each round that both have a figure in."""
    pairs = zip(base.values, head.values, strict=True)
    return [math.log(h / b) for b, h in pairs if b is not None and h is not None and b > 0 and h > 0]


def ratios(table: Table) -> dict[Case, float]:
    """Of two builds: head over base of every case that both have a figure for, the median over rounds."""
    base, head = table
    logs = {case: logs_of(base[case], head[case]) for case in base}
    return {case: math.exp(statistics.median(values)) for case, values in logs.items() if values}


def gone(table: Table) -> list[tuple[Case, str]]:
    """Cases that base has a figure for and head has none, with the reason."""
    base, head = table
    lost = [(case, samples) for case, samples in head.items() if base[case].known and not samples.known]
    return [(case, samples.reason or "no figure") for case, samples in lost]


class Worker:
    """A process that measures cases with one build until it is closed; a new one in place of one that a case ended."""

    def __init__(self, build: Build, capability: str = "") -> None:
        self._build, self._capability = build, capability
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  until `close`

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            environment = self._build.environment()
            if self._capability:
                environment["FASTLINALG_COMPUTE_CAPABILITY"] = self._capability
            self._process = subprocess.Popen(
                [self._build.python, str(CHILD)],
                env=environment,
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
            )
            if not self._answer({"site": str(self._build.site)}):
                raise RuntimeError(f"{self._build.label}: {self._end()}")
        return self._process

    def _answer(self, request: Any) -> str:
        """A line; empty if the process has ended."""
        process = self._process
        assert process and process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return ""
        return process.stdout.readline()

    def _end(self) -> str:
        """Why the process has ended."""
        assert self._process
        status, self._process = self._process.wait(), None
        self._errors.seek(0)
        return self._errors.read().strip() or f"exit status {status}"

    def ask(self, case: Case) -> dict[str, Any]:
        process = self._started()
        line = self._answer([case.name, case.params])
        if line:
            return dict(json.loads(line))
        self._end()
        return {"failed": f"the process ended with status {process.returncode}"}

    def close(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.close()
            self._process.wait()
        self._errors.close()


def asked(build: Build, request: dict[str, Any]) -> Any:
    """What a new process with this build answers to one request."""
    done = subprocess.run(
        [build.python, str(CHILD)],
        input=json.dumps(request) + "\n",
        env=build.environment(),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{build.label}: the benchmarks cannot be loaded:\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def list_cases(build: Build, which: str, pattern: str = "") -> list[Case]:
    """The cases of a set whose label has a match of the regular expression, as the build has them."""
    found = [Case(**row | {"params": tuple(row["params"])}) for row in asked(build, {"list": which})]
    return [case for case in found if re.search(pattern, case.label)]


def ask(build: Build, cases: Sequence[Case]) -> list[dict[str, Any]]:
    """An answer for each case, of one build alone."""
    worker = Worker(build)
    try:
        return [worker.ask(case) for case in cases]
    finally:
        worker.close()


def _round(
    builds: Sequence[Build], order: Sequence[int], cases: Sequence[Case], passes: int, end: float
) -> Iterator[tuple[Case, dict[int, list[dict[str, Any]]]]]:
    """Each case with the answers of the builds, by their numbers; none is begun after `end`."""
    workers: dict[tuple[int, str], Worker] = {}
    found: dict[Case, dict[int, list[dict[str, Any]]]] = {case: {which: [] for which in order} for case in cases}
    try:
        for case in [*cases] * passes:
            if time.monotonic() > end:
                return

            def answer(which: int, case: Case = case) -> dict[str, Any]:
                key = which, case.capability
                if key not in workers:
                    workers[key] = Worker(builds[which], case.capability)
                return workers[key].ask(case)

            (turn,) = one_case(dict.fromkeys(order, 1), answer, lambda said: said.get("state", {}).get("sm_mhz"))
            for which, said in turn.items():
                found[case][which].append(said)
            if len(found[case][order[0]]) == passes:
                yield case, found[case]
    finally:
        for worker in workers.values():
            worker.close()


def _left(begin: float, done: int, rounds: int) -> str:
    """What the rounds that are done say of those to come."""
    return f", {(time.monotonic() - begin) / done * (rounds - done) / 60:.1f} min left" if done else ""


def take_turns(
    builds: Sequence[Build],
    cases: Sequence[Case],
    rounds: int,
    progress: Progress,
    minutes: float = math.inf,
    passes: int = 1,
    save: Callable[[Table], None] = lambda table: None,
) -> Table:
    """Samples of each build; with two of them the order is A B, B A, and so on by rounds.

    With several `passes` the processes of a round measure all cases again and again, and the least is the sample: a
    machine that is slow for a second, as virtual ones are, is slow for one of them. After so many `minutes` no case is
    begun. `save` gets the samples every ten seconds, so that what is cut short leaves something.
    """
    table: Table = [{case: Samples() for case in cases} for _ in builds]
    begin = saved = time.monotonic()
    end = begin + 60 * minutes
    for number in range(rounds):
        if time.monotonic() > end:
            break
        progress(f"round {number + 1} of {rounds}{_left(begin, number, rounds)}")
        order = range(len(builds))[:: -1 if number % 2 else 1]
        for case, answers in _round(builds, order, cases, passes, end):
            for which, samples in enumerate(table):
                samples[case].add(min(answers[which], key=lambda one: one.get("value", math.inf)))
            if time.monotonic() > saved + SAVE_S:
                save(table)
                saved = time.monotonic()
    save(table)
    return table
