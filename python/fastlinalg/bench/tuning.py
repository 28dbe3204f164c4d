"""How far the cost rules of the kernel table are from this machine, and the table of factors that mends it.

A rule's estimate times the row's factor is what dispatch then compares (``cpp/dispatch/tuning.h``). The factor is a
function of the estimate itself: at a few microseconds a launch decides, at a thousand the memory or the arithmetic.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import fastlinalg as fl

from .. import _core
from .contenders import DeviceSession, HostSession
from .operands import Operands
from .problems import Problem, random
from .timing import Plan

Knots = list[tuple[float, float]]  # microseconds by the rule, factor

SEED = 20
SHAPES = {"cpu": {"sgemm": 40, "transpose": 30}, "cuda": {"sgemm": 80, "sgemv": 60, "transpose": 40}}
MOST_WORK = {  # what one call may do: floating-point operations of a product, bytes of the others
    "cpu": {"sgemm": 4e8, "transpose": 6e7},
    "cuda": {"sgemm": 2e11, "sgemv": 1.2e8, "transpose": 1.2e8},
}


@dataclass(frozen=True)
class Effort:
    """How many of `SHAPES` to measure, one of so many, and how often each row."""

    every: int
    repeats: int


FULL, QUICK = Effort(1, 5), Effort(3, 3)
CLOSE = 4.0  # rows that the rules think this much slower than the best are left alone
MOST_ROWS = 8
APART_EVERY = 3  # problems: rows that dispatch takes for one precision alone
KNOTS_PER_DECADE = 2
LEAST_SAMPLES = 3  # of a row, and of a knot
CLAMP = 4.0
LEAST_GAIN = 1.01  # a table that does less than that on shapes it has not seen is noise, or not worth other bits


@dataclass(frozen=True)
class Sample:
    """One row on one problem: microseconds by its rule, and measured."""

    kernel: str
    rule_us: float
    us: float
    strict: bool = True
    passed_over: bool = False  # the rules alone do not choose it here


Group = list[Sample]  # the rows of one problem


@dataclass
class Tuned:
    """What was found out about one operation on one device.

    Attributes
    ----------
    factors : dict
        Knots for each row; empty if the rules alone choose as well.
    before, after : float
        The geometric mean of the chosen row's time over the best row's time: by the rules, and by factors fitted to
        the other half of the shapes.
    """

    op: str
    shapes: int = 0
    factors: dict[str, Knots] = field(default_factory=dict)
    before: float = 1.0
    after: float = 1.0


def problems(op: str, device: str, effort: Effort = FULL) -> list[Problem]:
    """Contiguous problems of sizes drawn log-uniformly, the same on every machine."""
    most, wanted = MOST_WORK[device][op], math.ceil(SHAPES[device][op] / effort.every)
    found: list[Problem] = []
    for problem in random(op, 12 * wanted, SEED):
        plain = replace(problem, pads=(0, 0), offsets=(0, 0, 0))
        # Products with a vector are SGEMV's; on the CPU they have bits of their own and no choice.
        if plain.work > most or (op == "sgemm" and min(plain.m, plain.n) < 2):
            continue
        found.append(plain)
        if len(found) == wanted:
            break
    return found


def estimates(problem: Problem, device: str) -> dict[str, float]:
    """What the rules say of each row that can run the problem."""
    trans_a = problem.trans_a or problem.trans
    shape = (problem.m, problem.n, problem.k, problem.batch)
    return dict(_core.rule_estimates(problem.op, *shape, trans_a, problem.trans_b, "accurate", device))


def parts(op: str, device: str, found: dict[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """The rows that dispatch chooses between, and those that it takes for ``precision="reproducible"`` alone.

    On the CPU the rows that keep that order serve the other precisions, too.
    """
    apart = {row.name for row in fl.kernels(op) if device == "cuda" and row.traits.reproducible}
    return (
        {name: us for name, us in found.items() if name not in apart},
        {name: us for name, us in found.items() if name in apart},
    )


def _worth_measuring(found: dict[str, float], passed_over: Collection[str]) -> dict[str, float]:
    """The best by the rules, as far as they are close to the one that these would choose."""
    order = sorted(found, key=found.__getitem__)
    best = next((found[name] for name in order if name not in passed_over), math.inf)
    return {name: found[name] for name in [name for name in order if found[name] <= CLOSE * best][:MOST_ROWS]}


def measure(
    op: str, device: str, note: Callable[[str], None], wrong: Collection[str] = (), effort: Effort = FULL
) -> list[Group]:
    """Time the rows that may be chosen on each problem.

    Left out are those with other bits than the rest on the CPU, and those that were found to be wrong.
    """
    rows = {row.name: row for row in fl.kernels(op)}
    passed_over = {name for name, row in rows.items() if row.passed_over}
    plan = Plan(effort.repeats, 3e4 if device == "cpu" else 1e4)
    todo = problems(op, device, effort)
    groups: list[Group] = []
    outsiders: set[str] = set()
    for number, problem in enumerate(todo, 1):
        note(f"{op} {problem.label} ({number} of {len(todo)})")
        found = {name: us for name, us in estimates(problem, device).items() if name not in wrong}
        here = parts(op, device, found)[: 2 if number % APART_EVERY == 0 else 1]
        choices = [rules for part in here if len(rules := _worth_measuring(part, passed_over)) > 1]
        if not choices:
            continue
        session: Any = (HostSession if device == "cpu" else DeviceSession)(problem, Operands(problem, SEED))
        for rules in choices:
            results = _results(session, rules)
            if device == "cpu":
                outsiders |= _other_bits(results)
            contenders = [session.ours(name) for name in results if name not in outsiders]
            timings = session.measure(contenders, plan, lambda _: None)
            us = {c.name: timings[c.name].median for c in contenders}
            groups.append([Sample(n, rules[n], us[n], rows[n].strict, n in passed_over) for n in us])
    kept = [[sample for sample in group if sample.kernel not in outsiders] for group in groups]
    return [group for group in kept if len(group) > 1]


def _results(session: Any, rules: Iterable[str]) -> dict[str, bytes]:
    """The bits of sampled rows from each kernel that takes the operands where they lie now."""
    results = {}
    for name in rules:
        try:
            results[name] = session.result(session.ours(name)).tobytes()
        except ValueError:  # the rules were asked about aligned operands
            continue
    return results


def _other_bits(results: dict[str, bytes]) -> set[str]:
    """The rows whose results differ from that of the first, which the rules would take."""
    first = next(iter(results.values()), b"")
    return {name for name, result in results.items() if result != first}


# ---------------------------------------------------------------- the fit
def fit(groups: Sequence[Group]) -> dict[str, Knots]:
    """Factors measured over rule: medians around each knot, clamped."""
    points: dict[str, list[tuple[float, float]]] = {}
    for group in groups:
        for s in group:
            points.setdefault(s.kernel, []).append((math.log10(s.rule_us), math.log(s.us / s.rule_us)))
    return {name: _knots(row) for name, row in points.items()}


def _knots(points: list[tuple[float, float]]) -> Knots:
    limit = math.log(CLAMP)
    overall = statistics.median(ratio for _, ratio in points)
    first, last = (round(KNOTS_PER_DECADE * edge(x for x, _ in points)) for edge in (min, max))
    knots: Knots = []
    for number in range(first, last + 1):
        at = number / KNOTS_PER_DECADE
        near = [ratio for x, ratio in points if abs(x - at) <= 1.0 / KNOTS_PER_DECADE]
        if len(near) >= LEAST_SAMPLES:
            ratio = max(-limit, min(limit, statistics.median(near)))
            knots.append((10.0**at, round(math.exp(ratio), 4)))
    return knots or [(1.0, round(math.exp(max(-limit, min(limit, overall))), 4))]


def corrected(knots: Knots, us: float) -> float:
    """The estimate times the factor, as ``cpp/dispatch/tuning.cpp`` computes it."""
    at, factors = np.log(knots).T
    return us * math.exp(np.interp(math.log(max(us, 1e-3)), at, factors))


def loss(groups: Sequence[Group], factors: dict[str, Knots]) -> float:
    """The geometric mean of the chosen row's time over the best one's, in either precision."""
    logs = []
    for group in groups:
        for rows in (group, [s for s in group if s.strict]):
            if len(rows) > 1:
                chosen = _chosen(rows, factors)
                logs.append(math.log(chosen.us / min(s.us for s in rows)))
    return math.exp(statistics.fmean(logs)) if logs else 1.0


def _chosen(rows: Sequence[Sample], factors: dict[str, Knots]) -> Sample:
    by_rule = min(rows, key=lambda s: (s.passed_over, s.rule_us))
    if by_rule.kernel not in factors:
        return by_rule
    known = [s for s in rows if s.kernel in factors]
    return min(known, key=lambda s: corrected(factors[s.kernel], s.rule_us))


def judge(op: str, groups: Sequence[Group]) -> Tuned:
    """Fit to each half of the shapes, test on the other; keep a fit to all of them if that helped."""
    result = Tuned(op, len(groups))
    halves = groups[::2], groups[1::2]
    if min(map(len, halves)) < LEAST_SAMPLES:
        return result
    result.before = loss(groups, {})
    crossed = [loss(test, fit(train)) for train, test in (halves, halves[::-1])]
    result.after = math.sqrt(crossed[0] * crossed[1])
    if result.before / result.after >= LEAST_GAIN:
        result.factors = fit(groups)
    return result


def tune(
    device: str, note: Callable[[str], None], wrong: Mapping[str, Collection[str]], effort: Effort = FULL
) -> list[Tuned]:
    """Measure all operations of one kind of device that leave a choice; `wrong` are rows to leave out of each."""
    _core.clear_tuning()
    return [judge(op, measure(op, device, note, wrong.get(op, ()), effort)) for op in SHAPES[device]]
