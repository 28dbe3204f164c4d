"""How calls are timed, on the host and on a device.

Nothing here imports fastlinalg: `asv_bench/` takes this module from its checkout, whatever commit it measures.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from .turns import take_turns

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
    least : int
        So many samples all the same, however long they take.
    """

    repeats: int
    budget_us: float
    least: int = 1

    def samples(self, block_us: float) -> int:
        """How many blocks of this length to time."""
        return max(self.least, min(self.repeats, int(self.budget_us / max(block_us, 1e-3))))


@dataclass(frozen=True)
class Timing:
    """Microseconds per call, one sample per block of calls.

    With `per_round`, so many samples of every round that the contenders took part in by turns. `clocks` are those of a
    GPU meanwhile, where they can be read.
    """

    samples: list[float]
    method: str
    per_round: int = 0
    clocks: dict[str, float] | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    def speed_against(self, other: Timing) -> float:
        """How many times as fast this is as the other: the median over rounds, else of the medians."""
        if self.per_round and other.per_round:
            pairs = zip(self._rounds(), other._rounds(), strict=False)
            return statistics.median(theirs / ours for ours, theirs in pairs)
        return other.median / self.median

    def _rounds(self) -> list[float]:
        starts = range(0, len(self.samples), self.per_round)
        return [statistics.median(self.samples[i : i + self.per_round]) for i in starts]


def once(call: HostCall) -> float:
    """Microseconds of one call on the host."""
    return _block(call, 1)


BLOCK_US = 2e3  # long against the clock's resolution, short against a scheduler's turn
WARM_US = 50e3  # calls longer than this need no warm-up before each block


@dataclass(frozen=True)
class Quiet:
    """How to keep libraries with threads of their own from disturbing each other.

    After a call, the threads of OpenBLAS look for the next one for 2**28 ticks of the time-stamp counter (0.10 s at
    2.6 GHz) before they sleep, and take whole scheduler turns of whatever runs on their cores meanwhile: in blocks
    that followed each other at once, we lost up to half our speed to them. So everyone rests before each turn, and
    then warms up, and there are few rounds of several blocks.
    """

    rest_us: float = 0.0
    warm_us: float = 0.0
    rounds: int = 10_000


ROUNDS = 5  # of several threads and on a device, with several samples in each
AMONG_THREADS = Quiet(150e3, 20e3, ROUNDS)


def _warm_up(call: HostCall, length_us: float, quiet: Quiet) -> None:
    time.sleep(quiet.rest_us / 1e6)
    if length_us < WARM_US or quiet.warm_us:
        call()
    end = time.perf_counter() + (quiet.warm_us - length_us) / 1e6
    while time.perf_counter() < end:
        call()


def _block(call: HostCall, repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Microseconds per call of several in a row."""
    begin = clock()
    for _ in range(repeats):
        call()
    return (clock() - begin) * 1e6 / repeats


def alternating(
    calls: Mapping[str, HostCall],
    plan: Plan,
    quiet: Quiet = Quiet(),
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Time host calls in rounds, in which the contenders take turns.

    Frequency changes and other load then meet all of them alike, and ratios within a round are steadier than
    the times. A contender whose blocks are long takes part in the first rounds only.
    """
    lengths = {name: min(once(call), once(call)) for name, call in calls.items()}
    repeats = {name: max(1, min(10_000, int(BLOCK_US / max(us, 0.1)))) for name, us in lengths.items()}
    wanted = {name: plan.samples(repeats[name] * us) for name, us in lengths.items()}
    rounds = {name: min(n, quiet.rounds) for name, n in wanted.items()}
    per_round = {name: n // rounds[name] for name, n in wanted.items()}

    def turn(name: str) -> list[float]:
        _warm_up(calls[name], lengths[name], quiet)
        return [_block(calls[name], repeats[name], clock) for _ in range(per_round[name])]

    samples: dict[str, list[float]] = {name: [] for name in calls}
    for found in take_turns(rounds, turn):
        for name, blocks in found.items():
            samples[name] += blocks
    return {name: Timing(samples[name], "alternating blocks", per_round[name]) for name in calls}


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


REST_S = 0.25  # at most


def _rested(turn: Callable[[str], Timing]) -> Callable[[str], Timing]:
    """A turn after a rest as long as the turn before it, so that nobody begins on a card that another has heated."""
    lasted = 0.0

    def after_a_rest(name: str) -> Timing:
        nonlocal lasted
        time.sleep(lasted)
        begin = time.perf_counter()
        found = turn(name)
        lasted = min(REST_S, time.perf_counter() - begin)
        return found

    return after_a_rest


def by_turns(
    names: Sequence[str], sides: Collection[str], rounds: int, turn: Callable[[str], Timing]
) -> dict[str, Timing]:
    """Time contenders on a device in rounds of a turn each, rested, those of the `sides` of ratios at near clocks."""
    kept: dict[str, list[Timing]] = {name: [] for name in names}
    for found in take_turns(
        dict.fromkeys(names, rounds), _rested(turn), lambda timing: (timing.clocks or {}).get("sm_mhz"), sides
    ):
        for name, timing in found.items():
            kept[name].append(timing)
    return {name: _joined(turns) for name, turns in kept.items()}


def _joined(turns: Sequence[Timing]) -> Timing:
    each = min(len(timing.samples) for timing in turns)
    samples = [sample for timing in turns for sample in timing.samples[:each]]
    clocks = [timing.clocks for timing in turns if timing.clocks]
    medians = {name: statistics.median(entry[name] for entry in clocks) for name in (clocks[0] if clocks else ())}
    return Timing(samples, turns[0].method, each, medians or None)
