"""Operands in device memory, seconds from device events, cuBLAS, and the state of the GPU while it works.

Times are those of the library's own `_core.time_in_graph`: events around a CUDA graph of several launches. It is not
public, and every commit from the first one on has it.
"""

import functools
import statistics

import numpy as np
from bench import timing as shared
from bench.cublas import WORKSPACE_BYTES, Library
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


class Cublas:
    """cuBLAS on device arrays in C order; `trans` swaps the axes of the second or the only matrix."""

    def __init__(self):
        self._workspace = put(np.empty(WORKSPACE_BYTES // 4, np.float32))
        self._library = Library(address(self._workspace))

    def product(self, a, b, out, trans_b=False):
        *batch, m, k = a.shape
        n = out.shape[-1]
        operands = (address(a), k), (address(b), b.shape[-1]), (address(out), n)
        return self._library.sgemm(False, trans_b, m, n, k, *operands, *batch)

    def times_vector(self, a, x, out, trans):
        m, n = a.shape
        return self._library.sgemv(trans, m, n, (address(a), n), address(x), address(out))


@functools.cache
def cublas():
    try:
        return Cublas()
    except ImportError as error:
        raise NotImplementedError(f"cuBLAS is not installed: {error}") from None


def copy(source, target):
    """A kernel of PyTorch that moves as much as a copy: what is called one is a memcpy, slower for large matrices."""
    try:
        import torch
    except ImportError:
        torch = None
    s.demand(torch and torch.cuda.is_available(), "PyTorch with CUDA is not installed, which copies")
    flat = [torch.as_tensor(array, device="cuda").reshape(-1) for array in (source, target)]

    def work(stream):
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            torch.neg(flat[0], out=flat[1])

    return work


def address(array):
    return array.__cuda_array_interface__["data"][0]


def note(said):
    """Keep what the sensors say for `state`."""
    for name, value in said.items():
        _state.setdefault(name, []).append(value)


def state():
    """The medians of what was noted since the last call."""
    found = {name: statistics.median(values) for name, values in _state.items()}
    _state.clear()
    return found
