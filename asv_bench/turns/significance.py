"""What differs between two builds, by how much, and how sure that is.

A round gives one ratio a case: head's figure over base's, both from fresh processes one after the other. The mean of
their logarithms is the change, without the fifth at each end, where other load of the machine shows, and Student's t
for such a mean says whether it may be none (K. K. Yuen, Biometrika 61(1), 1974). A few rounds know little about their
own scatter, so the variance of a case is drawn towards the median of all cases, which counts as much as `PRIOR_ROUNDS`
more rounds would (G. K. Smyth, Statistical Applications in Genetics and Molecular Biology 3(1), 2004).

What is sure may still be too little to matter, so each case has a threshold, the smallest of three that its own scatter
allows: what the rounds cannot tell from noise is judged by a coarser one, or not at all.

One look at many cases finds some that differ by chance. So there are two: `suspects` are picked generously from the
rounds over all cases, and `judge` sees new rounds of these alone, with Holm's correction for their number.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from .cases import Case
from .rounds import Samples, Table, gone, logs_of

TIERS = (0.02, 0.04, 0.10)  # a slowdown counts from here on: steady cases, common ones, noisy ones
LEAST_SECONDS = 20e-9  # of a call: what the place of code in memory makes of the same source
ALPHA = 0.01
SUSPICION = 0.10  # probability, for a second look
PRIOR_ROUNDS = 3
TRIMMED = 0.2  # of the rounds, at each end


@dataclass(frozen=True)
class Change:
    """One case: `ratio` is head over base, within `low` and `high` at 99 %; `p` that there is none, uncorrected."""

    case: Case
    rounds: int
    base: float
    head: float
    ratio: float
    low: float
    high: float
    p: float
    threshold: float | None  # None: too noisy to be judged

    @property
    def percent(self) -> float:
        return 100 * (self.ratio - 1)

    @property
    def counts(self) -> bool:
        """Whether it is large enough to matter, sure or not."""
        small = self.case.unit == "seconds" and abs(self.head - self.base) < LEAST_SECONDS
        return self.threshold is not None and not small and abs(math.log(self.ratio)) > math.log1p(self.threshold)


@dataclass(frozen=True)
class Outcome:
    """What counts and is sure, in order of size; `noisy` could not be judged; `gone` has no figure any more."""

    slower: list[Change]
    faster: list[Change]
    noisy: list[Change]
    gone: list[tuple[Case, str]]

    @property
    def ok(self) -> bool:
        return not self.slower and not self.gone


def changes(base: Mapping[Case, Samples], head: Mapping[Case, Samples]) -> list[Change]:
    """Every case that both builds have a figure for in at least two rounds."""
    logs = {case: values for case in base if len(values := logs_of(base[case], head[case])) >= 2}
    errors = {case: float(stats.mstats.trimmed_stde(values, (TRIMMED, TRIMMED))) for case, values in logs.items()}
    common = statistics.median(error**2 for error in errors.values()) if errors else 0.0
    return [_change(case, logs[case], error**2, common, base[case], head[case]) for case, error in errors.items()]


def _change(case: Case, logs: list[float], variance: float, common: float, base: Samples, head: Samples) -> Change:
    figures = statistics.median(base.known), statistics.median(head.known)
    mean, kept = float(stats.trim_mean(logs, TRIMMED)), len(logs) - 2 * int(TRIMMED * len(logs))
    ratio = math.exp(mean)
    if len(set(base.known)) == len(set(head.known)) == 1:  # sizes and counts, the same every time
        return Change(case, len(logs), *figures, ratio, ratio, ratio, float(mean == 0), TIERS[0])
    degrees = kept - 1 + PRIOR_ROUNDS
    error = math.sqrt((PRIOR_ROUNDS * common + (kept - 1) * variance) / degrees) or 1e-12
    p = 2 * float(stats.t.sf(abs(mean) / error, degrees))
    low, high = map(float, stats.t.interval(1 - ALPHA, degrees, mean, error))
    sure_of = abs(mean) - (high - mean)
    allowed = [tier for tier in TIERS if high - mean <= tier or sure_of > math.log1p(TIERS[-1])]
    return Change(case, len(logs), *figures, ratio, math.exp(low), math.exp(high), p, min(allowed, default=None))


def suspects(first: Table) -> list[Case]:
    """Cases worth a second look, from rounds over all of them.

    A likely change of half the first threshold, or least figures that differ by the whole one: on a busy machine, where
    few rounds say nothing for sure, the least of them are the steadiest.
    """
    base, head = first
    found = []
    for change in changes(base, head):
        likely = change.p < SUSPICION or change.threshold is None
        least = min(head[change.case].known) / (min(base[change.case].known) or 1.0)
        if (likely and abs(change.percent) > 100 * TIERS[0] / 2) or abs(least - 1) > TIERS[0]:
            found.append(change.case)
    return found


def judge(first: Table, second: Table) -> Outcome:
    """What the second rounds say of the suspects; what the first say is gone."""
    found = changes(*second)
    sure = _holm([c.p for c in found])
    flagged = [c for c, is_sure in zip(found, sure, strict=True) if is_sure and c.counts]
    return Outcome(
        slower=sorted((c for c in flagged if c.ratio > 1), key=lambda c: -c.ratio),
        faster=sorted((c for c in flagged if c.ratio < 1), key=lambda c: c.ratio),
        noisy=[c for c in found if c.threshold is None],
        gone=gone(first),
    )


def _holm(p: Sequence[float]) -> list[bool]:
    """Which of them are below `ALPHA` where that is the probability of even one mistake."""
    order = sorted(range(len(p)), key=p.__getitem__)
    found = [False] * len(p)
    for rank, i in enumerate(order):
        if p[i] * (len(p) - rank) >= ALPHA:
            break
        found[i] = True
    return found


def scatter(samples: Sequence[float]) -> float:
    """By what part repeated figures of one build differ: half the distance between their quartiles over the median."""
    return float(stats.iqr(samples)) / 2 / statistics.median(samples)
