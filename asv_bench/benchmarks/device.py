"""Operands in device memory, seconds from device events, peers, and the state of the GPU while it works.

Times are those of the library's own `_core.time_in_graph`: events around a CUDA graph of several launches. It is not
public, and every commit from the first one on has it.
"""

import importlib
import statistics

import fastlinalg as fl

from . import early
from . import support as s

ROUNDS, REPLAYS = 3, 4
GRAPH_S = 4e-3  # long against the launch of a graph
MOST_LAUNCHES = 50
SHORT_S = 100e-6  # launches of CuPy cost some 10 us on the host
_handle = None
_state: dict[str, list[float]] = {}


def demand_device():
    s.demand(fl.cuda.is_available(), f"no CUDA device: {fl.info()['cuda'].get('message', 'reason unknown')}")


def demand_arrays():
    s.demand(hasattr(fl, "DeviceArray"), "there are no device arrays at this commit")


def library():
    """Where the functions for arrays in device memory are."""
    return fl if hasattr(fl, "DeviceArray") else early


def put(array):
    return library().DeviceArray.from_numpy(array)


def demand_memory(elements):
    free = fl.cuda.memory_info() if hasattr(fl.cuda, "memory_info") else {}
    free = free.get("free") if isinstance(free, dict) else getattr(free, "free", None)
    s.demand(not free or 4 * elements < 0.8 * free, f"{4 * elements / 2**30:.1f} GiB are more than the device has free")


def _timed(work, launches):
    return statistics.median(fl._core.time_in_graph(work, launches, REPLAYS)) * 1e-6


def _launches(work):
    fl._core.time_in_graph(work, 1, 1)
    once = max(_timed(work, 1), 1e-7)
    return max(1, min(MOST_LAUNCHES, int(GRAPH_S / once)))


def seconds(work):
    """Median seconds per launch; `work` takes the address of the stream to launch on."""
    launches = _launches(work)
    found = []
    for _ in range(ROUNDS):
        found.append(_timed(work, launches))
        sample()
    return statistics.median(found)


def ratio(ours, theirs, timed=_timed):
    """Our time as a multiple of the peer's: the median over rounds in which the two take turns."""
    launches = {work: _launches(work) if timed is _timed else MOST_LAUNCHES for work in (ours, theirs)}
    found = []
    for turn in range(ROUNDS):
        pair = (ours, theirs) if turn % 2 == 0 else (theirs, ours)
        times = {work: timed(work, launches[work]) for work in pair}
        found.append(times[ours] / times[theirs])
        sample()
    return statistics.median(found)


def ratio_to_peer(ours, peer, theirs):
    """CuPy refuses to call cuBLAS while a graph is captured: both are launched plainly then, which hides short ones."""
    if peer.captures:
        return ratio(ours, theirs)
    alone = seconds(ours)
    s.demand(alone > SHORT_S, f"{alone * 1e6:.0f} us are hidden by CuPy's launches; PyTorch is needed for a ratio")
    return ratio(ours, theirs, peer.timed)


class Peer:
    """cuBLAS by way of PyTorch or CuPy, on the same device memory."""

    def __init__(self, name):
        self._library = importlib.import_module(name)
        self._name = name
        self.captures = name == "torch"

    def view(self, array):
        if self._name == "torch":
            return self._library.as_tensor(array, device="cuda")
        return self._library.asarray(array)

    def _on(self, stream):
        cuda = self._library.cuda
        return cuda.stream(cuda.ExternalStream(stream)) if self._name == "torch" else cuda.ExternalStream(stream)

    def timed(self, work, launches):
        """Seconds per plain launch on one stream, between two events of CuPy."""
        cuda = self._library.cuda
        stream, begin, end = cuda.Stream(non_blocking=True), cuda.Event(), cuda.Event()
        work(stream.ptr)
        begin.record(stream)
        for _ in range(launches):
            work(stream.ptr)
        end.record(stream)
        end.synchronize()
        return cuda.get_elapsed_time(begin, end) * 1e-3 / launches

    def product(self, a, b, out):
        """`a`, `b` and `out` as views: matrices, or stacks of them."""
        torch = self._name == "torch"
        call = self._library.matmul if not torch or a.ndim != 2 else self._library.mm
        return self._work(lambda: call(a, b, out=out))

    def times_vector(self, a, x, out):
        call = self._library.mv if self._name == "torch" else self._library.matmul
        return self._work(lambda: call(a, x, out=out))

    def copy(self, source, target):
        """A kernel that moves as much as a copy; what is called a copy is a memcpy, slower for large matrices."""
        negative = self._library.neg if self._name == "torch" else self._library.negative
        return self._work(lambda: negative(source, out=target))

    def _work(self, call):
        def work(stream):
            with self._on(stream):
                call()

        return work


def peer():
    """The first that is installed and sees the device."""
    for name in ("torch", "cupy"):
        try:
            found = Peer(name)
        except ImportError:
            continue
        if name == "torch":
            if not found._library.cuda.is_available():
                continue
            found._library.set_float32_matmul_precision("highest")  # no TF32
        return found
    raise NotImplementedError("cuBLAS is called through PyTorch or CuPy, and neither is installed with CUDA")


def sample():
    """Note clock, power and temperature now, where nvidia-ml-py answers."""
    for name, value in sensors().items():
        _state.setdefault(name, []).append(value)


def sensors():
    """`sm_mhz`, `watts` and `celsius`; empty where they cannot be read."""
    global _handle
    try:
        import pynvml

        if _handle is None:
            pynvml.nvmlInit()
            _handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        return {
            "sm_mhz": float(pynvml.nvmlDeviceGetClockInfo(_handle, pynvml.NVML_CLOCK_SM)),
            "watts": pynvml.nvmlDeviceGetPowerUsage(_handle) / 1000.0,
            "celsius": float(pynvml.nvmlDeviceGetTemperature(_handle, pynvml.NVML_TEMPERATURE_GPU)),
        }
    except Exception:  # not installed, no driver, no permission: the benchmark does without
        return {}


def state():
    """The medians of what was noted since the last call."""
    found = {name: statistics.median(values) for name, values in _state.items()}
    _state.clear()
    return found
