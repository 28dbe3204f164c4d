"""Whole calls from NumPy to NumPy: products whose operands begin and whose results end in ordinary host memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import fastlinalg as fl

from .. import _core
from .._check import Array, expected_product
from .contenders import Contender
from .operands import Accuracy, fill_normal, judge, strips
from .problems import Problem
from .results import Row
from .runner import ProblemRunner
from .timing import AMONG_THREADS, Timing
from .turns import take_turns

ROTATED_BYTES = 512 << 20  # operands of calls in a row: more than the last-level cache of any machine holds
MOST_PAIRS = 512
ALIVE_BYTES = 4 << 30  # of fresh results
PAUSED_BYTES = 64 << 20  # above, a pause is short against the call
PAUSE_S = 2e-3
SHORT_US = 5e3  # calls shorter than this are warmed up and timed more often
WARM_S, MORE_SAMPLES = 0.02, 4
# Of the contenders: a process, its GPU and its link are slow at first, which must not count for one of them alone.
TURNS = 2
FORCED_SIZE = 1024  # up to here the GPU is measured too where device="auto" would stay on the CPU


@dataclass(frozen=True)
class Mode:
    """Where the result goes, and whether the machine idles before each call.

    "fresh": new memory, as all earlier results are alive. "reused": the last result has just been dropped, so its
    memory may come back. "out": memory of the caller's, written before.
    """

    result: str
    pause_s: float

    @property
    def label(self) -> str:
        return f"{self.result}{' paused' if self.pause_s else ''}"


MODES = tuple(Mode(result, pause) for pause in (0.0, PAUSE_S) for result in ("fresh", "reused", "out"))


@dataclass
class HostRow(Row):
    """One contender in one mode."""

    mode: Mode = MODES[0]
    link_us: float | None = None

    @property
    def entry(self) -> str:
        return f"{self.kernel}, {self.mode.label}"

    @property
    def headline(self) -> bool:
        return not self.peer and self.mode in (MODES[0], MODES[2])

    @property
    def link_share(self) -> float | None:
        """The time that the link needs for the bytes, over the median."""
        return None if self.link_us is None else self.link_us / self.timing.median

    def as_dict(self, peak_gflops: float) -> dict[str, Any]:
        mode = {"layout": self.problem.layout, "result": self.mode.result, "pause_ms": self.mode.pause_s * 1e3}
        return super().as_dict(peak_gflops) | mode | {"link_us": self.link_us, "link_share": self.link_share}


class Pairs:
    """Operand pairs of one problem, together large enough that each call finds its own in memory, not in a cache."""

    def __init__(self, problem: Problem, seed: int) -> None:
        step = 2 if problem.layout == "strided" else 1
        shapes = [tuple(step * size for size in shape) for shape in (problem.a_shape(), problem.b_shape())]
        sizes = [int(np.prod(shape)) for shape in shapes]
        count = min(max(-(-ROTATED_BYTES // (4 * sum(sizes))), 1), MOST_PAIRS)
        self._flat = np.empty(count * sum(sizes), np.float32)
        fill_normal(self._flat, seed)
        self.pairs: list[tuple[Array, Array]] = []
        at = 0
        for _ in range(count):
            pair = []
            for shape, size in zip(shapes, sizes, strict=True):
                memory = self._flat[at : at + size]
                pair.append(_laid_out(memory, shape, problem.layout))
                at += size
            self.pairs.append((pair[0], pair[1]))
        self._turn = 0

    def next(self) -> tuple[Array, Array]:
        self._turn += 1
        return self.pairs[self._turn % len(self.pairs)]


def _laid_out(memory: Array, shape: tuple[int, ...], layout: str) -> Array:
    if layout == "F":
        return memory.reshape(shape, order="F")
    return memory.reshape(shape)[::2, ::2] if layout == "strided" else memory.reshape(shape)


def _ours(name: str, precision: Any, device: str | list[str]) -> Contender:
    return Contender(name, lambda a, b, out: fl.matmul(a, b, out, precision=precision, device=device))


class HostRunner(ProblemRunner):
    """Whole calls on operands in host memory."""

    def _contenders(self, problem: Problem) -> list[Contender]:
        device, found = self.settings.device, []
        for precision in self.settings.precisions:
            found.append(_ours(precision, precision, device))
            if device == "auto" and fl.cuda.is_available() and max(problem.m, problem.n, problem.k) <= FORCED_SIZE:
                found.append(_ours(f"{precision} cuda", precision, "cuda"))
            if together := list(self.settings.devices):
                found.append(_ours(f"{precision} {','.join(together)}", precision, together))
        return found + [Contender(peer.name, peer.multiply, peer) for peer in self.settings.peers]

    def _run_one(self, problem: Problem) -> None:
        pairs = Pairs(problem, self.settings.seed)
        speeds = self._us_per_work.setdefault((problem.op, problem.trans), {})
        every = self._contenders(problem)
        named = {c.name: c for c in every if not self._too_long(problem, c.name, speeds.get(c.name, 0.0))}
        out = np.zeros(problem.out_shape(), np.float32)
        accuracy = self._check(problem, pairs.pairs[0], named, out)
        link_us = self._link_us(problem)
        samples: dict[str, dict[Mode, list[float]]] = {name: {} for name in named}

        def turn(name: str) -> None:
            time.sleep(AMONG_THREADS.rest_us / 1e6)  # until the threads of the one before have gone to sleep
            for mode in MODES:
                if mode.pause_s and problem.bytes > PAUSED_BYTES:
                    continue
                self.progress.detail(f"{name}, {mode.label}")
                samples[name].setdefault(mode, []).extend(self._time(named[name], mode, pairs, out))

        list(take_turns(dict.fromkeys(named, TURNS), turn))
        for name, contender in named.items():
            speeds[name] = min(map(min, samples[name].values())) / problem.work
            for mode in samples[name]:
                timings = {other: Timing(samples[other][mode], "wall clock") for other in named}
                others = [other for other, c in named.items() if not c.ours and other != name]
                ratios = {other: timings[name].speed_against(timings[other]) for other in others}
                common = (problem, name, not contender.ours, timings[name], accuracy[name], ratios)
                self.document.rows.append(HostRow(*common, mode=mode, link_us=link_us))

    def _check(
        self, problem: Problem, pair: tuple[Array, Array], named: dict[str, Contender], out: Array
    ) -> dict[str, Accuracy]:
        """Sampled rows against float64, and every element finite, of a new result and of one written to `out`."""
        a, b = pair
        rows = strips(problem.m, 16, np.random.default_rng(self.settings.seed))
        expected = expected_product(a[rows], b)
        worst = {}
        for name, contender in named.items():
            self.progress.detail(f"{name}, checked")
            out.fill(np.nan)
            contender.call(a, b, out)
            judged = []
            for result in (contender.call(a, b, None), out):
                found = judge(result[rows], expected, problem.k)
                whole = result.shape == out.shape and bool(np.isfinite(result).all())
                judged.append(replace(found, ok=found.ok and whole))
            worst[name] = min(judged, key=lambda accuracy: accuracy.ok)
        return worst

    def _link_us(self, problem: Problem) -> float | None:
        """What the link takes for these operands and this result from and to pinned memory, both ways at once."""
        if self.settings.device == "cpu" or not fl.cuda.is_available():
            return None
        result = 4 * problem.m * problem.n
        link = _core.time_link(int(problem.bytes) - result, result, 5)
        self.document.header.setdefault("link", []).append({"shape": problem.label, **link})
        return float(link["both_us"])

    def _time(self, contender: Contender, mode: Mode, pairs: Pairs, out: Array) -> list[float]:
        """Microseconds of each call of one turn; what a call returned is dropped between calls, as the mode says."""
        target = out if mode.result == "out" else None
        alive: list[Any] = []
        most_alive = max(2, ALIVE_BYTES // out.nbytes) if mode.result == "fresh" else 0

        def one() -> float:
            a, b = pairs.next()
            del alive[: max(0, len(alive) - most_alive)]
            if mode.pause_s:
                time.sleep(mode.pause_s)
            begin = time.perf_counter()
            result = contender.call(a, b, target)
            elapsed = (time.perf_counter() - begin) * 1e6
            if target is None:
                alive.append(result)
            return elapsed

        first = one()
        warm_until = time.perf_counter() + WARM_S
        while first < SHORT_US and time.perf_counter() < warm_until:
            first = min(first, one())
        samples = self.settings.plan.samples(first) * (MORE_SAMPLES if first < SHORT_US else 1)
        return [one() for _ in range(max(1, samples // TURNS))]
