"""How calls are timed, on the host and on a device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
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
    pause_us : float
        On the host: rest so long before each call and time single calls. 0: calls in a row.
    """

    repeats: int
    budget_us: float
    pause_us: float = 0.0

    def samples(self, block_us: float) -> int:
        """How many blocks of this length to time; at least one."""
        return max(1, min(self.repeats, int(self.budget_us / max(block_us, 1e-3))))


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
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e6


BLOCK_US = 2e3  # long against the clock's resolution, short against a scheduler's turn
WARM_US = 50e3  # calls longer than this need no warm-up before each block
ROUNDS = 5  # of several threads and on a device, with several samples in each


@dataclass(frozen=True)
class Quiet:
    """How to keep libraries with threads of their own from disturbing each other.

    After a call, the threads of OpenBLAS look for the next one for 2**28 ticks of the time-stamp counter (0.10 s at
    2.6 GHz) before they sleep, and take whole scheduler turns of whatever runs on their cores meanwhile: in blocks
    that followed each other at once, we lost up to half our speed to them. So everyone rests before each turn, and
    then warms up.
    """

    rest_us: float = 0.0
    warm_us: float = 0.0


AMONG_THREADS = Quiet(150e3, 20e3)


def _warm_up(call: HostCall, length_us: float, quiet: Quiet) -> None:
    time.sleep(quiet.rest_us / 1e6)
    if length_us < WARM_US or quiet.warm_us:
        call()
    end = time.perf_counter() + (quiet.warm_us - length_us) / 1e6
    while time.perf_counter() < end:
        call()


def _block(call: HostCall, repeats: int, pause_us: float) -> float:
    """Microseconds per call of several in a row."""
    if pause_us:
        time.sleep(pause_us / 1e6)
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) * 1e6 / repeats


def alternating(calls: Mapping[str, HostCall], plan: Plan, quiet: Quiet | None = None) -> dict[str, Timing]:
    """Time host calls in rounds, in which the contenders take turns.

    Frequency changes and other load then meet all of them alike, and ratios within a round are steadier than
    the times. A contender whose blocks are long takes part in the first rounds only. With `quiet` there are few
    rounds of several blocks, since each turn begins with a rest; every other round goes backwards.
    """
    lengths = {name: min(once(call), once(call)) for name, call in calls.items()}
    most = 1 if plan.pause_us else 10_000
    repeats = {name: max(1, min(most, int(BLOCK_US / max(us, 0.1)))) for name, us in lengths.items()}
    wanted = {name: plan.samples(repeats[name] * us) for name, us in lengths.items()}
    rounds = {name: min(n, ROUNDS) if quiet else n for name, n in wanted.items()}
    per_round = {name: n // rounds[name] for name, n in wanted.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(max(rounds.values(), default=0)):
        for name in list(calls)[:: -1 if quiet and turn % 2 else 1]:
            if turn >= rounds[name]:
                continue
            call = calls[name]
            _warm_up(call, lengths[name], quiet or Quiet())
            samples[name] += [_block(call, repeats[name], plan.pause_us) for _ in range(per_round[name])]
    method = f"single calls after {plan.pause_us / 1e3:g} ms" if plan.pause_us else "alternating blocks"
    return {name: Timing(samples[name], method, per_round[name]) for name in calls}


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


CLOCKS_APART = 0.03
ATTEMPTS = 3


def by_turns(
    names: Sequence[str], sides: Collection[str], rounds: int, turn: Callable[[str], Timing]
) -> dict[str, Timing]:
    """Time contenders on a device in rounds of a turn each; every other round goes backwards.

    Where the clocks of the `sides` of ratios are apart by more than 3 % these take their turns again, three times at
    most, and the turns with the nearest clocks count.
    """
    kept: dict[str, list[Timing]] = {name: [] for name in names}
    for number in range(rounds):
        order = names[:: -1 if number % 2 else 1]
        found = {name: turn(name) for name in order}
        for _ in range(ATTEMPTS - 1):
            if _apart(found, sides) <= CLOCKS_APART:
                break
            again = found | {name: turn(name) for name in order if name in sides}
            found = min(found, again, key=lambda turns: _apart(turns, sides))
        for name in names:
            kept[name].append(found[name])
    return {name: _joined(turns) for name, turns in kept.items()}


def _apart(turns: Mapping[str, Timing], sides: Collection[str]) -> float:
    """How much faster the fastest clock was than the slowest, as a share of it."""
    clocks = [timing.clocks["sm_mhz"] for name, timing in turns.items() if name in sides and timing.clocks]
    return max(clocks) / min(clocks) - 1 if clocks else 0.0


def _joined(turns: Sequence[Timing]) -> Timing:
    each = min(len(timing.samples) for timing in turns)
    samples = [sample for timing in turns for sample in timing.samples[:each]]
    clocks = [timing.clocks for timing in turns if timing.clocks]
    medians = {name: statistics.median(entry[name] for entry in clocks) for name in (clocks[0] if clocks else ())}
    return Timing(samples, turns[0].method, each, medians or None)
