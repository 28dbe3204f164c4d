"""The one driver of comparisons: contenders take turns, and again where the clocks of a GPU were apart.

Nothing here imports fastlinalg: `asv_bench/` takes this module from its checkout, whatever commit it measures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeVar

CLOCKS_APART = 0.03
ATTEMPTS = 3

Name = TypeVar("Name")
Sample = TypeVar("Sample")


def apart(clocks: Iterable[float | None]) -> float:
    """How much faster the fastest of the known clocks was than the slowest, as a share of it."""
    known = [mhz for mhz in clocks if mhz]
    return max(known) / min(known) - 1 if known else 0.0


def take_turns(
    rounds: Mapping[Name, int],
    measure: Callable[[Name], Sample],
    clock: Callable[[Sample], float | None] = lambda _: None,
    sides: Collection[Name] | None = None,
) -> Iterator[dict[Name, Sample]]:
    """A sample of each contender in every round that it takes part in; every other round goes backwards.

    Drifts of a machine then meet all of them alike. `clock` is the SM clock in MHz that a sample was taken at. Where
    the clocks of the `sides` of ratios, of all by default, are apart by more than 3 % these take their turns again,
    three times at most, and the turns with the nearest clocks count.
    """
    for number in range(max(rounds.values(), default=0)):
        order = [name for name, last in rounds.items() if number < last][:: -1 if number % 2 else 1]
        compared = [name for name in order if sides is None or name in sides]

        def spread(turns: Mapping[Name, Sample], compared: Collection[Name] = compared) -> float:
            return apart(clock(turns[name]) for name in compared)

        found = {name: measure(name) for name in order}
        for _ in range(ATTEMPTS - 1):
            if spread(found) <= CLOCKS_APART:
                break
            found = min(found, found | {name: measure(name) for name in compared}, key=spread)
        yield found
