"""What the benchmarks over commits have too little of for two builds of one day: random shapes, and short sums."""

from __future__ import annotations

import itertools
import math
import random

from benchmarks import device, shapes, timing
from benchmarks import support as s

import fastlinalg as fl

SHORT = device.shared.Plan(repeats=6, budget_us=8e3, least=3)  # many shapes make up for few samples
LARGEST, MOST_ON_CPU = 8192, 6e8  # of a side; of m n k


def _random_shapes(count: int) -> list[str]:
    """Sizes log-uniform, operands stored transposed or not: "12x562x5524:TN"."""
    rng, found = random.Random(3), []
    while len(found) < count:
        sizes = [round(math.exp(rng.uniform(0, math.log(LARGEST)))) for _ in range(3)]
        letters = "".join(rng.choice("NT") for _ in range(2))
        if fl.cuda.is_available() or math.prod(sizes) < MOST_ON_CPU:
            found.append(f"{'x'.join(map(str, sizes))}:{letters}")
    return found


class _Product(s.Limited):
    """On the GPU in a precision, on the CPU with so many threads."""

    version = "1"

    @classmethod
    def cases(cls):
        hows = shapes.PRECISIONS if fl.cuda.is_available() else ("1 thread", "2 threads")
        return itertools.product(cls.shapes(), hows)

    def setup(self, shape, how):
        sizes, _, letters = shape.partition(":")
        m, n, k = s.sizes(sizes)
        trans_a, trans_b = (letter == "T" for letter in letters)
        s.clear()
        a, b = s.random(*((k, m) if trans_a else (m, k))), s.random(*((n, k) if trans_b else (k, n)))
        out, options = s.empty(m, n), {"trans_a": trans_a, "trans_b": trans_b}
        self.threads = 0 if how in shapes.PRECISIONS else int(how.split()[0])
        if self.threads:
            s.demand_threads(self.threads)
            self.limits = s.Threads(self.threads, peer=False)
            self.call = lambda: fl.sgemm(a, b, out=out, device="cpu", **options)
        else:
            a, b, out = map(device.put, (a, b, out))
            self.call = lambda stream: fl.sgemm(a, b, out=out, precision=how, stream=stream, **options)

    @s.unit("seconds")
    def track_seconds(self, *_):
        return timing.least(self.call, self.threads) if self.threads else device.seconds(self.call, SHORT)


class Random(_Product):
    @staticmethod
    def shapes():
        return _random_shapes(400 if fl.cuda.is_available() else 50)


class ShortK(_Product):
    @staticmethod
    def shapes():
        sides, ks = ("64x64", "300x2000", "1024x1024", "4096x1000"), (1, 5, 8, 16, 30, 48, 64, 100)
        return [f"{side}x{k}:NN" for side in sides for k in ks]
