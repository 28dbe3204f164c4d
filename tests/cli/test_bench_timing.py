"""How contenders take turns: order, rests, clocks, and what a ratio is made of."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from fastlinalg.bench import nvml, peers, timing
from fastlinalg.bench.contenders import DISPATCH, STRICT, Contender, DeviceSession
from fastlinalg.bench.problems import parse
from fastlinalg.bench.timing import Plan, Quiet, Timing, alternating, by_turns
from support.programs import patient


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
    assert turns(log[6:]) == ["a", "b", "c", "b", "a", "b", "c", "b", "a"]  # every other round backwards
    assert all(len(t.samples) == 4 and t.per_round == 1 for t in timings.values())


def test_with_threads_each_turn_begins_with_a_rest_and_the_order_turns_round(log):
    timings = alternating(contenders(log), Plan(15, 1e6), Quiet(0.25e6, 10.0, 5))
    forth, back = ["rest 0.25", "a", "rest 0.25", "b", "rest 0.25", "c"], ["c", "b", "a"]
    there_and_back = forth + [x for name in back for x in ("rest 0.25", name)]
    assert turns(log[6:]) == (there_and_back * 3)[: 5 * len(forth)]
    assert all(len(t.samples) == 15 and t.per_round == 3 for t in timings.values())


def test_ratios_are_medians_over_rounds():
    ours = Timing([1, 1, 9, 2, 2, 2, 4, 4, 4], "", per_round=3)
    theirs = Timing([3, 3, 3, 2, 2, 2], "", per_round=3)  # took part in two rounds
    assert ours.speed_against(theirs) == 2.0
    assert Timing([1, 2, 30], "").speed_against(Timing([6, 6], "", per_round=1)) == 3.0


def at(mhz: float, *samples: float) -> Timing:
    return Timing(list(samples), "cuda graph", clocks={"sm_mhz": mhz})


def test_on_a_device_every_other_round_goes_backwards():
    order = []
    timings = by_turns(["a", "b"], ["a", "b"], 3, lambda name: order.append(name) or at(1000, len(order), 0.0))
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert timings["a"].samples == [1, 0, 4, 0, 5, 0] and timings["a"].per_round == 2
    assert timings["b"].clocks == {"sm_mhz": 1000}


def test_on_a_device_a_turn_begins_with_a_rest_as_long_as_the_last(monkeypatch):
    rests, clock = [], iter([0, 0.125, 1, 11, 20, 20.0625, 30, 30])
    monkeypatch.setattr(time, "sleep", rests.append)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    by_turns(["a", "b"], ["a", "b"], 2, lambda _: at(1000, 1.0))
    assert rests == [0, 0.125, timing.REST_S, 0.0625]


def test_turns_at_other_clocks_are_taken_again_and_the_nearest_count():
    clocks = {"ours": iter([1980, 1980, 1900]), "peer": iter([1515, 1700, 1850]), "other": iter([900])}
    timings = by_turns(list(clocks), ["ours", "peer"], 1, lambda name: at(mhz := next(clocks[name]), mhz))
    assert {name: timing.samples for name, timing in timings.items()} == {
        "ours": [1900],
        "peer": [1850],
        "other": [900],
    }
    clocks = {"ours": iter([1980, 1900, 1980]), "peer": iter([1515, 1800, 1600])}  # never near enough
    timings = by_turns(list(clocks), list(clocks), 1, lambda name: at(mhz := next(clocks[name]), mhz))
    assert timings["ours"].samples == [1900] and timings["peer"].clocks == {"sm_mhz": 1800}
    unknown = by_turns(["a", "b"], ["a", "b"], 2, lambda name: Timing([1.0, 2.0][: 1 + (name == "a")], "loop"))
    assert unknown["a"].clocks is None and unknown["a"].samples == [1, 2, 1, 2] and unknown["b"].samples == [1, 1]


def test_clocks_are_read_while_something_runs(monkeypatch):
    readings = iter([1500.0, 1700.0, 1600.0])
    read = threading.Event()

    def sensors():
        mhz = next(readings, None)
        if mhz is None:
            read.set()
        return mhz and {"sm_mhz": mhz, "watts": 2 * mhz}

    monkeypatch.setattr(nvml, "sensors", sensors)
    with nvml.watched() as seen:
        assert read.wait(patient(30)) and seen == {}
    assert seen == {"sm_mhz": 1600, "watts": 3200}


@pytest.mark.parametrize("silent", [None, "nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage", "nvmlInit"])
def test_sensors_say_what_nvml_answers(silent, monkeypatch):
    class NVMLError(Exception):
        pass

    def answers(name, value):
        def ask(*_):
            if name == silent:
                raise NVMLError
            return value

        return ask

    values = {"Init": None, "DeviceGetHandleByIndex": 7, "DeviceGetClockInfo": 1980, "DeviceGetPowerUsage": 650_000}
    values |= {"DeviceGetTemperature": 50, "DeviceGetUtilizationRates": SimpleNamespace(gpu=30)}
    made_up = {f"nvml{name}": answers(f"nvml{name}", value) for name, value in values.items()}
    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(NVMLError=NVMLError, **made_up))
    monkeypatch.setattr(nvml, "_first_gpu", nvml._first_gpu.__wrapped__)
    full = {"sm_mhz": 1980, "watts": 650, "celsius": 50}
    assert nvml.sensors() == {None: full, "nvmlDeviceGetTemperature": full | {"celsius": 0}}.get(silent, {})
    assert nvml.busy_percent() == (0 if silent == "nvmlInit" else 30)


def test_without_nvml_there_are_no_clocks(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)  # as if it were not installed
    monkeypatch.setattr(nvml, "_first_gpu", nvml._first_gpu.__wrapped__)
    assert nvml.sensors() == {} and nvml.busy_percent() == 0


def test_cublas_is_what_pytorch_calls_in_float32(monkeypatch):
    asked = []
    cuda = SimpleNamespace(preferred_blas_library=asked.append)
    torch = SimpleNamespace(
        __version__="2.11.0", set_float32_matmul_precision=asked.append, backends=SimpleNamespace(cuda=cuda)
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    (peer,) = peers.load(["cublas"], "cuda", None)
    assert asked == ["highest", "cublas"] and peer.version == "of PyTorch 2.11.0"
    (transposed,) = parse("transpose", "3x4")
    assert peer.device_calls(transposed, None, None, None) == {} and "cublas" not in peers.HOST_PEERS
    torch.cuda = SimpleNamespace(stream=nullcontext, ExternalStream=int)
    (rounded,) = peers.load(["tf32"], "cuda", None)
    asked.clear()
    rounded._on_stream(lambda: asked.append("product"))(0)
    assert asked == ["high", "product", "highest"]


def test_on_a_device_what_is_compared_takes_turns(monkeypatch):
    monkeypatch.setattr(DeviceSession, "_time", lambda _, contender, plan: Timing([1.0] * plan.repeats, contender.name))
    session, notes = DeviceSession.__new__(DeviceSession), []
    ours = [Contender(DISPATCH, None), Contender("a row", None)]
    alone = session.measure(ours, Plan(15, 1e6), notes.append)
    assert notes == [DISPATCH, "a row"] and len(alone[DISPATCH].samples) == 15
    compared = session.measure([*ours, Contender(STRICT, None)], Plan(15, 1e6), notes.append)
    assert notes[2:8] == [DISPATCH, "a row", STRICT, STRICT, "a row", DISPATCH] and len(notes) == 2 + 5 * 3
    assert {(len(timing.samples), timing.per_round) for timing in compared.values()} == {(15, 3)}
