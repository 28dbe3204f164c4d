"""How calls are timed, on the host and on a device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

HostCall = Callable[[], object]
DeviceCall = Callable[[int], object]  # takes the address of the CUDA stream to launch on


@dataclass(frozen=True)
class Plan:
    """How long to measure.

    Attributes
    ----------
    repeats : int
        At most so many samples of each contender.
    budget_us : float
        At most about so much time for each contender, after a first call.
    """

    repeats: int
    budget_us: float

    def samples(self, block_us: float) -> int:
        """How many blocks of this length to time; at least one."""
        return max(1, min(self.repeats, int(self.budget_us / max(block_us, 1e-3))))


@dataclass(frozen=True)
class Timing:
    """Microseconds per call, one sample per block of calls.

    If `paired`, sample i of every contender comes from the same round.
    """

    samples: list[float]
    method: str
    paired: bool = False

    @property
    def mean(self) -> float:
        return statistics.fmean(self.samples)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    def speed_against(self, other: Timing) -> float:
        """How many times as fast this is as the other: the median over rounds, else of the medians."""
        if self.paired and other.paired:
            pairs = zip(self.samples, other.samples, strict=False)
            return statistics.median(theirs / ours for ours, theirs in pairs)
        return other.median / self.median


def once(call: HostCall) -> float:
    """Microseconds of one call on the host."""
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e6


BLOCK_US = 2e3  # long against the clock's resolution, short against a scheduler's turn
WARM_US = 50e3  # calls longer than this need no warm-up before each block


def alternating(calls: Mapping[str, HostCall], plan: Plan) -> dict[str, Timing]:
    """Time host calls in rounds, each contender one block per round.

    Frequency changes and other load then meet all of them alike, and ratios within a round are steadier than
    the times. A contender whose blocks are long takes part in the first rounds only.
    """
    lengths = {name: min(once(call), once(call)) for name, call in calls.items()}
    repeats = {name: max(1, min(10_000, int(BLOCK_US / max(us, 0.1)))) for name, us in lengths.items()}
    rounds = {name: plan.samples(repeats[name] * us) for name, us in lengths.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(max(rounds.values(), default=0)):
        for name, call in calls.items():
            if turn >= rounds[name]:
                continue
            if lengths[name] < WARM_US:
                call()
            begin = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            samples[name].append((time.perf_counter() - begin) * 1e6 / repeats[name])
    return {name: Timing(samples[name], "alternating blocks", paired=True) for name in calls}


REPLAY_US = 5e3  # long against the launch of a graph
MAX_LAUNCHES = 50


def in_graph(call: DeviceCall, plan: Plan, time_in_graph: Callable[[DeviceCall, int, int], list[float]]) -> list[float]:
    """Microseconds per call from replays of a CUDA graph that holds many of them."""
    first = time_in_graph(call, 1, 1)
    launches = max(1, min(MAX_LAUNCHES, int(REPLAY_US / max(first[0], 0.1))))
    block_us = launches * first[0]
    if block_us > plan.budget_us:
        return first
    return list(time_in_graph(call, launches, plan.samples(block_us)))
