"""What Dask costs around one product: one chunk against the plain call, by turns, and the making of large graphs.

    python benchmarks/dask_overhead.py [--sizes 256,1024,2048] [--rounds 15]

Milliseconds are medians, of the clock and of the CPU time of this process. "cluster" is a LocalCluster of two workers
with one thread each, with the operands on a worker and the result left there.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import fastlinalg as fl
import fastlinalg.dask as fld


def milliseconds(call: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of this process's CPU time."""
    clock, cpu = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - clock) * 1e3, (time.process_time() - cpu) * 1e3


def one_chunk(n: int, rounds: int, client: Client) -> None:
    rng = np.random.default_rng(n)
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    x, y = da.from_array(a, -1), da.from_array(b, -1)
    here, there = fld.matmul(x, y), client.persist([x, y])
    wait(there)
    count = iter(range(10**6))
    calls: dict[str, Callable[[], object]] = {
        "plain": lambda: fl.matmul(a, b),
        "plain, one thread": lambda: one_thread(a, b),
        "graph": lambda: fld.matmul(x, y),
        "sync": lambda: here.compute(scheduler="sync"),
        "threads": lambda: here.compute(scheduler="threads"),
        # Another alpha each time, since Dask computes nothing twice that it still has.
        "cluster": lambda: wait(client.persist(fld.matmul(*there, alpha=1.0 + 2.0**-20 * next(count)))),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(rounds + 2):
        for name, call in calls.items():
            times[name].append(milliseconds(call))
    print(f"{n}: clock, CPU ms")
    for name, found in times.items():
        clock, cpu = (statistics.median(column) for column in zip(*found[2:], strict=True))
        print(f"  {name}: {clock:.2f}, {cpu:.2f}", flush=True)


def one_thread(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with fl.num_threads(1):
        return fl.matmul(a, b)


def large_graph(chunks: int) -> None:
    x = da.zeros((chunks * 10, chunks * 10), dtype=np.float32, chunks=10)
    _, cpu = milliseconds(lambda: fld.matmul(x, x, split_k=1))
    print(f"a graph of {chunks**3} links: {cpu:.0f} ms of CPU time, {1e3 * cpu / chunks**3:.1f} us for each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="256,1024,2048")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    for chunks in (8, 32):
        large_graph(chunks)
    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for n in map(int, args.sizes.split(",")):
            one_chunk(n, args.rounds, client)


if __name__ == "__main__":
    main()
