"""A product on 8 to 4096 GPUs, simulated: SUMMA as Dask would schedule it, SUMMA and 2.5-D as programs of MPI are.

    python benchmarks/scaling.py [--gpus 8,64,512,4096] [--links 50,200,900]

Prints the tables of docs/scaling.md, which has the assumptions. Nothing is measured and nothing is random: it prints
the same on every machine.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
from dataclasses import dataclass

FLOAT32 = 4
RATE = 200e12  # operations a second of one GPU: 210 to 216 TFLOP/s were measured from 8192 on, on one H200
MEMORY = 120e9  # bytes of one GPU for operands, of 141e9
LATENCY = 5e-6  # seconds of a message between two GPUs
TASK = 1e-3  # seconds of Dask's scheduler for each task
PER_GPU = 32768  # weak scaling: the side of each GPU's part of a matrix
FIXED = 131072  # strong scaling: the side of the matrices


@dataclass
class Plan:
    seconds: float
    words: str


def grid(gpus: int) -> tuple[int, int]:
    rows = next(r for r in range(math.isqrt(gpus), 0, -1) if gpus % r == 0)
    return rows, gpus // rows


# ---------------------------------------------------------------- Dask
class Workers:
    """The links and the queues of all workers. A chunk is sent by whoever has it and is free first."""

    def __init__(self, gpus: int, link: float):
        self.link = link
        self.sends, self.receives, self.computes = ([0.0] * gpus for _ in range(3))
        self.holders: dict[object, dict[int, float]] = {}  # of a chunk: the worker, and since when it has it

    def fetch(self, chunk: object, worker: int, nbytes: float, now: float) -> float:
        """When the chunk is there."""
        has = self.holders[chunk]
        if worker not in has:
            source = min(has, key=lambda w: (max(self.sends[w], has[w]), w))
            begin = max(now, self.sends[source], has[source], self.receives[worker])
            end = begin + LATENCY + nbytes / self.link
            self.sends[source] = self.receives[worker] = has[worker] = end
        return max(now, has[worker])

    def compute(self, worker: int, seconds: float, ready: float) -> float:
        self.computes[worker] = max(self.computes[worker], ready) + seconds
        return self.computes[worker]


def dask_summa(n: int, gpus: int, link: float, chains: int, steps: int) -> float:
    """Seconds of chains of `steps` links, `chains` on each worker; a link is assigned when the one before is done."""
    rows, columns = grid(gpus)
    per_row, per_column = grid(chains)
    out_rows, out_columns = rows * per_row, columns * per_column
    workers = Workers(gpus, link)
    for i, j, p in itertools.product(range(out_rows), range(out_columns), range(steps)):
        workers.holders.setdefault(("a", i, p), {(i // per_row) * columns + p * columns // steps: 0.0})
        workers.holders.setdefault(("b", p, j), {(p * rows // steps) * columns + j // per_column: 0.0})
    a_bytes, b_bytes = (FLOAT32 * n / out * n / steps for out in (out_rows, out_columns))
    work = 2 * n**3 / (out_rows * out_columns * steps) / RATE
    ready = [(0.0, 0, i, j) for i in range(out_rows) for j in range(out_columns)]
    heapq.heapify(ready)
    scheduler = last = 0.0
    while ready:
        now, p, i, j = heapq.heappop(ready)
        scheduler = max(scheduler, now) + TASK
        worker = (i // per_row) * columns + j // per_column
        there = workers.fetch(("a", i, p), worker, a_bytes, scheduler)
        there = max(there, workers.fetch(("b", p, j), worker, b_bytes, scheduler))
        done = workers.compute(worker, work, there)
        last = max(last, done)
        if p + 1 < steps:
            heapq.heappush(ready, (done, p + 1, i, j))
    return last


def dask_bytes(n: int, gpus: int, chains: int, steps: int) -> float:
    """Of a worker: its parts of A and B, its sums and a new one, and the chunks of a step for each of its chains."""
    rows, columns = grid(gpus)
    own, new = 3 * n * n / gpus, n * n / gpus / chains
    return FLOAT32 * (own + new + (n / rows + n / columns) * n / steps)


def best_dask(n: int, gpus: int, link: float) -> Plan:
    """Of one or four chains a worker, with up to 64 links: those that may be the best, cheapest to schedule first."""
    ideal = 2 * n**3 / gpus / RATE
    choices = [
        (max(TASK * gpus * chains * steps, ideal), chains, steps)
        for chains in (1, 4)
        for steps in (1, 2, 4, 8, 16, 32, 64)
        if dask_bytes(n, gpus, chains, steps) <= MEMORY
    ]
    best = Plan(math.inf, "")
    for least, chains, steps in sorted(choices):
        if least < best.seconds:
            seconds = dask_summa(n, gpus, link, chains, steps)
            if seconds < best.seconds:
                best = Plan(seconds, f"{gpus * chains * steps} tasks")
    return best


# ---------------------------------------------------------------- programs of MPI
def summa(n: int, gpus: int, link: float) -> Plan:
    """Panels are passed on along rows and columns while the ones before are multiplied; only the first are waited for.

    So many panels that the wait for the first and the messages of all cost the same.
    """
    rows, columns = grid(gpus)
    compute = 2 * n**3 / gpus / RATE
    moved = FLOAT32 * n * n * ((1 - 1 / columns) / rows + (1 - 1 / rows) / columns) / link
    message = math.log2(gpus) * LATENCY
    panels = max(columns, round(math.sqrt(moved / message)))
    return Plan(max(compute, moved) + moved / panels + panels * message, "")


def two_and_a_half(n: int, gpus: int, link: float) -> Plan:
    """On q x q x c GPUs: copies to c layers, q / c steps of Cannon's algorithm in each, and the sum of the layers."""
    compute = 2 * n**3 / gpus / RATE
    best = Plan(math.inf, "")
    for copies in (c for c in range(1, gpus) if c**3 <= gpus):
        side = math.isqrt(gpus // copies)
        block = FLOAT32 * n * n / side**2
        if side * side * copies != gpus or 5 * block > MEMORY:  # A, B, C, and the next of A and B
            continue
        spread = 3 * block / link if copies > 1 else 0.0
        shifts = 2 * block * side / copies / link
        messages = 2 * side / copies + 3 * math.log2(copies)
        seconds = spread + max(compute, shifts) + messages * LATENCY
        if seconds < best.seconds:
            best = Plan(seconds, f"c = {copies}")
    return best


# ---------------------------------------------------------------- tables
def table(title: str, side: str, sizes: list[tuple[int, int]], links: list[float]) -> None:
    print(f"{title}\n")
    print(f"| GPUs | {side} | link GB/s | at the peak, s | Dask, s | of the peak | SUMMA | 2.5-D |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for gpus, n in sizes:
        ideal = 2 * n**3 / gpus / RATE
        for link in links:
            dask, mpi, cube = (plan(n, gpus, link * 1e9) for plan in (best_dask, summa, two_and_a_half))
            cells = [f"{gpus}", f"{n}", f"{link:g}", f"{ideal:.3g}", f"{dask.seconds:.3g} ({dask.words})"]
            cells += [f"{ideal / plan.seconds:.0%}" for plan in (dask, mpi, cube)]
            cells[-1] += f" ({cube.words})" if cube.words else ""
            print(f"| {' | '.join(cells)} |", flush=True)
    print()


def largest_clusters() -> None:
    """Where the scheduler alone takes as long as the product at the peak, at one task for each GPU and step."""
    print("| n | 1 step | 4 steps | 16 steps |\n| --- | --- | --- | --- |")
    for n in (2**k for k in range(14, 22)):
        most = [int(math.sqrt(2 * n**3 / RATE / (steps * TASK))) for steps in (1, 4, 16)]
        print(f"| {n} | {' | '.join(map(str, most))} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", default="8,64,512,4096")
    parser.add_argument("--links", default="50,200,900")
    args = parser.parse_args()
    gpus = [int(number) for number in args.gpus.split(",")]
    links = [float(number) for number in args.links.split(",")]
    weak = [(count, round(PER_GPU * math.sqrt(count))) for count in gpus]
    table(f"Each GPU holds {PER_GPU} x {PER_GPU} of each matrix", "n", weak, links)
    table(f"One product of n = {FIXED}", "n", [(count, FIXED) for count in gpus], links)
    print("GPUs at which the scheduler takes as long as the product\n")
    largest_clusters()


if __name__ == "__main__":
    main()
