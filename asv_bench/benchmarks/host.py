"""From NumPy to NumPy: fresh results and existing ones, on the CPU, on a GPU, and where `auto` goes; several callers.

Products of square matrices; a call returns when the result is in host memory.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import fastlinalg as fl

from . import device, shapes, timing
from . import support as s

CPU_LARGEST = 2048
ANY = 2  # as many threads as the library has: time on the clock


class Square:
    """Seconds per product of all callers together, each with operands of its own."""

    version = "1"
    timeout = 120
    params = (shapes.HOST, ["out", "fresh"], ["cpu", "cuda", "auto"], shapes.PRECISIONS, [1, 2])
    param_names = ("n", "result", "device", "precision", "callers")
    quick = {
        "track_seconds": [
            ("1024", "out", "cpu", "accurate", 1), ("1024", "fresh", "cpu", "accurate", 1),
            ("1024", "fresh", "cpu", "accurate", 2),
            ("1024", "fresh", "cuda", "accurate", 1), ("4096", "fresh", "cuda", "accurate", 1),
            ("4096", "fresh", "cuda", "accurate", 2), ("8192", "out", "cuda", "accurate", 1),
            ("4096", "fresh", "cuda", "strict", 1),
        ],
        "track_ratio_to_numpy": [("1024", "fresh", "cpu", "accurate", 1)],
    }  # fmt: skip

    def setup(self, n, result, where, precision, callers):
        size = int(n)
        if where == "cpu":
            s.demand(size <= CPU_LARGEST, f"n = {n} takes too long on a CPU here")
        elif where == "cuda":
            device.demand_device()
        elif not fl.cuda.is_available():
            s.demand(size <= CPU_LARGEST, f"n = {n} takes too long without a GPU")
        s.demand_threads(callers)
        s.demand_precision(precision)
        s.clear()
        self.callers, self.threads = callers, fl.get_num_threads()
        operands = [(s.random(size, size), s.random(size, size)) for _ in range(callers)]
        existing = [s.empty(size, size) if result == "out" else None for _ in range(callers)]
        mine = zip(operands, existing, strict=True)
        self.work = [
            lambda a=a, b=b, out=out: fl.matmul(a, b, out, precision=precision, device=where) for (a, b), out in mine
        ]
        (a, b), peers = operands[0], existing[0] if result != "out" else s.empty(size, size)
        self.theirs = lambda: np.matmul(a, b, out=peers)

    @s.unit("seconds")
    def track_seconds(self, *_):
        if self.callers == 1:
            return timing.least(self.work[0], ANY)
        with ThreadPoolExecutor(self.callers) as pool:
            return timing.least(lambda: list(pool.map(lambda call: call(), self.work)), ANY) / self.callers

    @s.unit("ratio")
    def track_ratio_to_numpy(self, *params):
        s.demand(self.callers == 1, "the ratio is that of one caller")
        limits = s.Threads(self.threads, peer=True)
        try:
            return timing.ratio(self.work[0], self.theirs, ANY)
        finally:
            limits.restore()
