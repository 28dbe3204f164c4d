"""Operands in device memory, seconds from device events, cuBLAS by PyTorch, and the state of the GPU while it works.

Times are those of the library's own `_core.time_in_graph`: events around a CUDA graph of several launches. It is not
public, and every commit from the first one on has it.
"""

import functools
import statistics

from bench import timing as shared
from bench.nvml import watched

import fastlinalg as fl

from . import support as s

PLAN = shared.Plan(repeats=12, budget_us=50e3, least=3)
ROUNDS = 3
_state: dict[str, list[float]] = {}


def demand_device():
    s.demand(fl.cuda.is_available(), f"no CUDA device: {fl.info()['cuda'].get('message', 'reason unknown')}")
    s.demand(hasattr(fl, "DeviceArray"), "there are no device arrays at this commit")


def put(array):
    return fl.DeviceArray.from_numpy(array)


def demand_memory(elements):
    free = fl.cuda.memory_info() if hasattr(fl.cuda, "memory_info") else {}
    free = free.get("free") if isinstance(free, dict) else getattr(free, "free", None)
    s.demand(not free or 4 * elements < 0.8 * free, f"{4 * elements / 2**30:.1f} GiB are more than the device has free")


def _time_in_graph(work, launches, replays):
    """By a function of `_core` that later commits may keep among those for tests."""
    core = fl._core if hasattr(fl._core, "time_in_graph") else fl._core.testing
    return core.time_in_graph(work, launches, replays)


def _timed(plan, rounds, **works):
    def turn(name):
        with watched() as seen:
            samples = shared.in_graph(works[name], plan, _time_in_graph)
        return shared.Timing(samples, "", clocks=seen or None)

    found = shared.by_turns(list(works), works, rounds, turn)
    for timing in found.values():
        note(timing.clocks or {})
    return found


def seconds(work, plan=None):
    """Median seconds per launch; `work` takes the address of the stream to launch on."""
    return _timed(plan or PLAN, 1, work=work)["work"].median * 1e-6


def ratio(ours, theirs):
    """Our time as a multiple of the peer's: the median over rounds in which the two take turns."""
    found = _timed(PLAN, ROUNDS, ours=ours, theirs=theirs)
    return found["theirs"].speed_against(found["ours"])


@functools.cache
def _pytorch():
    try:
        import torch
    except ImportError:
        torch = None
    s.demand(torch and torch.cuda.is_available(), "PyTorch with CUDA is not installed, which calls cuBLAS and copies")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.preferred_blas_library("cublas")  # not cuBLASLt
    return torch


def _by_pytorch(function, *arrays, out):
    """Work of one of its functions on device arrays."""
    torch = _pytorch()

    def work(stream):
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            function(*arrays, out=out)

    return work


def _tensor(array):
    return _pytorch().as_tensor(array, device="cuda")


def cublas_product(a, b, out, trans_b=False):
    """cuBLAS on matrices or stacks of them, by the function of PyTorch that adds nothing to it on the device."""
    a, b, out = map(_tensor, (a, b, out))
    multiply = _pytorch().mm if a.ndim == 2 else _pytorch().bmm
    return _by_pytorch(multiply, a, b.mT if trans_b else b, out=out)


def cublas_times_vector(a, x, out, trans):
    a, x, out = map(_tensor, (a, x, out))
    return _by_pytorch(_pytorch().mv, a.mT if trans else a, x, out=out)


def copy(source, target):
    """A kernel of PyTorch that moves as much as a copy: what is called one is a memcpy, slower for large matrices."""
    source, target = (_tensor(array).reshape(-1) for array in (source, target))
    return _by_pytorch(_pytorch().neg, source, out=target)


def note(said):
    """Keep what the sensors say for `state`."""
    for name, value in said.items():
        _state.setdefault(name, []).append(value)


def state():
    """The medians of what was noted since the last call."""
    found = {name: statistics.median(values) for name, values in _state.items()}
    _state.clear()
    return found
