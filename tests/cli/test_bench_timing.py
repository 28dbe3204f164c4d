"""How contenders take turns on the host: order, rests, and what a ratio is made of."""

from __future__ import annotations

import time

import pytest

from fastlinalg.bench import timing
from fastlinalg.bench.timing import Plan, Quiet, Timing, alternating


def turns(calls: list[str]) -> list[str]:
    """The contenders in the order of their turns."""
    return [name for i, name in enumerate(calls) if i == 0 or calls[i - 1] != name]


@pytest.fixture
def log(monkeypatch):
    entries: list[str] = []
    monkeypatch.setattr(timing, "BLOCK_US", 50.0)
    monkeypatch.setattr(time, "sleep", lambda s: entries.append(f"rest {s:g}") if s else None)
    return entries


def contenders(log):
    return {name: lambda name=name: log.append(name) for name in ("a", "b", "c")}


def test_every_round_has_a_turn_of_each(log):
    timings = alternating(contenders(log), Plan(4, 1e6))
    assert turns(log[6:]) == ["a", "b", "c"] * 4
    assert all(len(t.samples) == 4 and t.per_round == 1 for t in timings.values())


def test_with_threads_each_turn_begins_with_a_rest_and_the_order_turns_round(log):
    timings = alternating(contenders(log), Plan(15, 1e6), Quiet(0.25e6, 10.0))
    forth, back = ["rest 0.25", "a", "rest 0.25", "b", "rest 0.25", "c"], ["c", "b", "a"]
    there_and_back = forth + [x for name in back for x in ("rest 0.25", name)]
    assert turns(log[6:]) == (there_and_back * 3)[: 5 * len(forth)]
    assert all(len(t.samples) == 15 and t.per_round == 3 for t in timings.values())


def test_pauses_come_before_every_timed_call(log):
    timings = alternating({"a": lambda: log.append("a")}, Plan(3, 1e6, pause_us=40e3))
    assert log[2:] == ["a", "rest 0.04", "a"] * 3
    assert timings["a"].method == "single calls after 40 ms"


def test_ratios_are_medians_over_rounds():
    ours = Timing([1, 1, 9, 2, 2, 2, 4, 4, 4], "", per_round=3)
    theirs = Timing([3, 3, 3, 2, 2, 2], "", per_round=3)  # took part in two rounds
    assert ours.speed_against(theirs) == 2.0
    assert Timing([1, 2, 30], "").speed_against(Timing([6, 6], "", per_round=1)) == 3.0
