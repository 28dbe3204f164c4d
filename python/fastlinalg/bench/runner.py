"""Measures a list of problems: estimate, check, time, one shape after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import fastlinalg as fl

from .contenders import DISPATCH, STRICT, Contender, DeviceSession, HostSession, Session
from .operands import Accuracy, Operands
from .peer import Peer
from .problems import Problem
from .results import Document, Row
from .timing import Plan

PROBE_WORK = {  # enough to estimate larger problems from, and a few milliseconds for the slowest kernel
    "cpu": {"sgemm": 1e7, "sgemv": 4e6, "transpose": 4e6},
    "cuda": {"sgemm": 2e9, "sgemv": 1e8, "transpose": 1e8},
}


@dataclass(frozen=True)
class Settings:
    """What the command line asked for.

    Attributes
    ----------
    device : str
        "cpu" or "cuda"; of whole calls "auto" too.
    precisions : sequence of str
        Of the dispatched product, and of the kernels that run unless they are asked for by name: one but of whole
        calls.
    peers : sequence of Peer
    plan : Plan
    limit_s : float
        A contender that would take longer for one call is skipped, and the output says so.
    seed : int
    kernels : sequence of str, optional
        Which to run; all that are available, and "dispatch", if None.
    against_strict : bool
        Whether the dispatched strict product is something to compare with.
    devices : sequence of str
        Of whole calls on several.
    """

    device: str
    precisions: Sequence[str]
    peers: Sequence[Peer]
    plan: Plan
    limit_s: float
    seed: int
    kernels: Sequence[str] | None = None
    against_strict: bool = False
    devices: Sequence[str] = ()


class Progress(Protocol):
    """Told what is going on."""

    def step(self, text: str) -> None: ...
    def detail(self, text: str) -> None: ...


class ProblemRunner:
    """Runs problem after problem into a document."""

    def __init__(self, settings: Settings, document: Document, progress: Progress) -> None:
        self.settings, self.document, self.progress = settings, document, progress
        self._us_per_work: dict[tuple[str, bool], dict[str, float]] = {}  # of contenders, by operation and trans

    def run(self, problems: Sequence[Problem]) -> None:
        """Measure each; a shape that does not fit in memory is skipped."""
        for problem in problems:
            self.progress.step(f"{problem.op} {problem.label}")
            try:
                self._run_one(problem)
            except MemoryError as error:
                self._skip(problem, "all", f"does not fit in memory: {error}")

    def _run_one(self, problem: Problem) -> None:
        raise NotImplementedError

    def _skip(self, problem: Problem, kernel: str, reason: str) -> None:
        self.document.skipped.append({"op": problem.op, "shape": problem.label, "kernel": kernel, "reason": reason})

    def _too_long(self, problem: Problem, kernel: str, us_per_work: float) -> bool:
        """Whether one call would take longer than it may, which the output says."""
        seconds = us_per_work * problem.work / 1e6
        if seconds > self.settings.limit_s:
            self._skip(problem, kernel, f"about {seconds:.1f} s per call, the limit is {self.settings.limit_s:g} s")
        return seconds > self.settings.limit_s


class UnknownKernel(ValueError):
    """A kernel was asked for that the device does not have; the message lists those it has."""


def kernel_names(op: str, device: str, wanted: Sequence[str] | None, precision: str = "accurate") -> list[str]:
    """The kernels of one operation to run on one kind of device, in the order of the kernel table."""
    rows = {kernel.name: kernel for kernel in fl.kernels(op) if kernel.device == device}
    any_row = op != "sgemm" or precision == "accurate"
    serving = [kernel for kernel in rows.values() if any_row or getattr(kernel.traits, precision)]
    usable = [kernel.name for kernel in serving if kernel.available] + [DISPATCH]
    for name in wanted or ():
        if name in rows and not rows[name].available:
            raise UnknownKernel(f"{op} kernel {name!r} cannot run here: {rows[name].reason}")
        if name in rows and name not in usable:
            raise UnknownKernel(f"{op} kernel {name!r} does not serve --precision {precision}")
    return [name for name in usable if wanted is None or name in wanted]


class Runner(ProblemRunner):
    """Kernels and libraries on operands that lie where they compute."""

    def _session(self, problem: Problem) -> tuple[Session, Operands]:
        operands = Operands(problem, self.settings.seed)
        on_host = self.settings.device == "cpu"
        return (HostSession if on_host else DeviceSession)(problem, operands, self.settings.precisions[0]), operands

    def _contenders(self, session: Session, problem: Problem) -> list[Contender]:
        settings = self.settings
        names = kernel_names(problem.op, settings.device, settings.kernels, settings.precisions[0])
        names += [STRICT] if settings.against_strict and problem.op == "sgemm" else []
        every = [session.ours(name) for name in names]
        for peer in settings.peers:
            every += session.theirs(peer)
        return list({c.name: c for c in [*every, *session.copies()]}.values())

    def _speeds(self, problem: Problem) -> dict[str, float]:
        """Of the contenders, from the time of a smaller problem; empty where none can be slow."""
        probe_work = PROBE_WORK[self.settings.device][problem.op]
        speeds = self._us_per_work.setdefault((problem.op, problem.trans), {})
        if problem.work <= probe_work or speeds:
            return speeds if problem.work > probe_work else {}
        small = problem.shrunk(probe_work)
        session, _ = self._session(small)
        for contender in self._contenders(session, small):
            self.progress.detail(f"{contender.name}, an estimate from {small.label}")
            try:
                speeds[contender.name] = session.first_us(contender) / small.work
            except ValueError:  # it refuses these operands, perhaps not the larger ones
                speeds[contender.name] = 0.0
        return speeds

    def _run_one(self, problem: Problem) -> None:
        speeds = self._speeds(problem)
        slow = [name for name, us in speeds.items() if self._too_long(problem, name, us)]
        if slow and len(slow) == len(speeds):
            return
        session, operands = self._session(problem)
        contenders = [c for c in self._contenders(session, problem) if c.name not in slow]
        accuracy = self._check(session, operands, contenders)
        contenders = [c for c in contenders if c.name in accuracy]
        timings = session.measure(contenders, self.settings.plan, lambda name: self.progress.detail(f"{name}, timed"))
        if problem.work >= PROBE_WORK[self.settings.device][problem.op]:
            for name, timing in timings.items():  # a better base than the probe to estimate larger shapes from
                self._us_per_work[problem.op, problem.trans][name] = min(timing.samples) / problem.work
        others = [c.name for c in contenders if c.reference]
        for contender in contenders:
            timing = timings[contender.name]
            ratios = {name: timing.speed_against(timings[name]) for name in others if name != contender.name}
            row = Row(problem, contender.name, not contender.ours, timing, accuracy[contender.name], ratios)
            self.document.rows.append(row)

    def _check(self, session: Session, operands: Operands, contenders: list[Contender]) -> dict[str, Accuracy | None]:
        """The accuracy of each contender that takes the operands; a copy has none."""
        accuracy: dict[str, Accuracy | None] = {}
        for contender in contenders:
            self.progress.detail(f"{contender.name}, checked")
            try:
                accuracy[contender.name] = None if contender.is_copy else operands.judge(session.result(contender))
            except ValueError as refusal:  # a kernel that does not take operands like these says what it needs
                self._skip(operands.problem, contender.name, str(refusal))
        return accuracy
