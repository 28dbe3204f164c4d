"""Builds take turns: in each round every build measures all cases in a fresh process, every other round backwards.

Where operands and code lie in memory makes up to a tenth of a difference that stays for as long as a process does, so
a sample is a process.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cases import Case

CHILD = Path(__file__).with_name("child.py")
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


Table = list[dict[Case, Samples]]  # one for each build


def list_cases(build: Build) -> list[Case]:
    """All cases of the benchmarks, asked of a process that has this build."""
    done = subprocess.run(
        [build.python, str(CHILD)],
        input='{"list": true}',
        env=build.environment(),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{build.label}: the benchmarks cannot be loaded:\n{done.stderr.strip()}")
    return [Case(**row | {"params": tuple(row["params"])}) for row in json.loads(done.stdout)]


def ask(build: Build, cases: Sequence[Case]) -> list[dict[str, Any]]:
    """An answer for each case. A case that ends the process is a failed one, and the others go on in the next."""
    answers: list[dict[str, Any]] = []
    while len(answers) < len(cases):
        rest = cases[len(answers) :]
        request = {"site": str(build.site), "cases": [[case.name, case.params] for case in rest]}
        done = subprocess.run(
            [build.python, str(CHILD)],
            input=json.dumps(request),
            env=build.environment(),
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        lines = done.stdout.splitlines()
        if not lines:
            raise RuntimeError(f"{build.label}: {done.stderr.strip() or f'exit status {done.returncode}'}")
        answers += [json.loads(line) for line in lines[1:]]
        if len(answers) == len(cases):
            break
        answers.append({"failed": f"the process ended with status {done.returncode}"})
    return answers


def take_turns(
    builds: Sequence[Build],
    cases: Sequence[Case],
    rounds: int,
    progress: Progress,
    after: Callable[[Table, int], bool] = lambda table, done: True,
    passes: int = 1,
    each: Callable[[Table], None] = lambda table: None,
) -> Table:
    """Samples of each build; with two of them the order is A B B A A B B A.

    With several `passes` a process measures all cases again and again, and the least is the sample: a machine that is
    slow for a second, as virtual ones are, is slow for one of them.

    `after` gets the samples so far and the number of rounds behind them; its False is the end. `each` gets them after
    every process, so that what ends early leaves something.
    """
    table: Table = [{case: Samples() for case in cases} for _ in builds]
    order = list(range(len(builds)))
    for number in range(rounds):
        for which in order if number % 2 == 0 else order[::-1]:
            progress(f"round {number + 1} of {rounds}: {builds[which].label}")
            answers = ask(builds[which], [*cases] * passes)
            for i, case in enumerate(cases):
                table[which][case].add(min(answers[i :: len(cases)], key=lambda one: one.get("value", math.inf)))
            each(table)
        if not after(table, number + 1):
            break
    return table
