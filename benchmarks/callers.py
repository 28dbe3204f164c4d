"""Threads that multiply at once, each on operands of its own, beside one thread that has all cores, or the GPU.

    python benchmarks/callers.py [--sizes 256,512,768,1024,2048] [--callers 2,4] [--rounds 9]
    python benchmarks/callers.py --device cuda --sizes 1024,4096,8192 --callers 2,4,8 [--fresh] [--beside 16384]

Milliseconds a call, medians over rounds in which the numbers of callers take turns: the time of all calls divided by
their number. Ratios are those of the total rate to one caller's, medians over rounds, so that a clock that changes from
round to round does not count. "alone", on the CPU: as many callers as there are cores, told to use one thread each,
which is what sharing the cores could reach. Results go into arrays of the callers; with --fresh into new ones.

--beside N: calls of 256 x 256 x 256 and of 1024 by themselves, and while another thread multiplies matrices of N x N.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

import fastlinalg as fl
from fastlinalg.bench.timing import Plan, alternating, once

SAMPLE_US = 1e5
NO_LIMIT_US = 1e12  # every contender takes part in all rounds
SHORT, SHORT_S = (256, 1024), 1.0


@dataclass(frozen=True)
class Caller:
    """One product: its operands, where it runs, and whether its result is new memory each time."""

    a: np.ndarray
    b: np.ndarray
    out: np.ndarray | None
    device: str

    def __call__(self) -> None:
        fl.matmul(self.a, self.b, out=self.out, device=self.device)


def caller(n: int, rng: np.random.Generator, device: str, fresh: bool) -> Caller:
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    return Caller(a, b, None if fresh else np.zeros((n, n), np.float32), device)


def sample(callers: list[Caller], threads: int, count: int) -> Callable[[], None]:
    def multiply(own: Caller) -> None:
        for _ in range(count):
            own()

    def together() -> None:
        with fl.num_threads(threads), ThreadPoolExecutor(len(callers)) as pool:
            list(pool.map(multiply, callers))

    return together


def measure(n: int, args: argparse.Namespace) -> None:
    rng, cores = np.random.default_rng(n), fl.get_num_threads()
    cases = {"1 caller": (1, cores)} | {f"{callers} callers": (callers, cores) for callers in args.callers}
    if args.device == "cpu":
        cases["alone"] = (cores, 1)
    own = [caller(n, rng, args.device, args.fresh) for _ in range(max(callers for callers, _ in cases.values()))]
    count = max(2, int(SAMPLE_US / min(once(own[0]) for _ in range(3))))
    calls = {name: sample(own[:callers], threads, count) for name, (callers, threads) in cases.items()}
    found = alternating(calls, Plan(args.rounds, NO_LIMIT_US))
    for name, (callers, _) in cases.items():
        ratio = callers * found[name].speed_against(found["1 caller"])
        print(f"{n:6} {name:>10}  {found[name].median / (1e3 * count * callers):9.3f} ms  {ratio:.3f}", flush=True)


def show_short(short: Caller, name: str) -> None:
    short()
    found, end = [], time.perf_counter() + SHORT_S
    while time.perf_counter() < end:
        found.append(once(short))
    middle, most = statistics.median(found), statistics.quantiles(found, n=20, method="inclusive")[-1]
    times = f"{middle:9.1f} us, nineteen of twenty below {most:.1f}, the longest {max(found):.1f}"
    print(f"{len(short.a):6} {name:>15}  {times}", flush=True)


def measure_beside(n: int, args: argparse.Namespace) -> None:
    rng = np.random.default_rng(n)
    *shorts, long = (caller(size, rng, args.device, args.fresh) for size in (*SHORT, n))
    for short in shorts:
        show_short(short, "by itself")
    long()
    enough = threading.Event()

    def again() -> int:
        done = 0
        while not enough.is_set():
            long()
            done += 1
        return done

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(again)
        for short in shorts:
            show_short(short, f"beside {n}")
        enough.set()
    print(f"{other.result()} calls of {n} meanwhile", flush=True)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=numbers, default="256,512,768,1024,2048")
    parser.add_argument("--callers", type=numbers, default="2,4")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--beside", type=int, metavar="N")
    args = parser.parse_args()
    for size in args.sizes:
        measure(size, args)
    if args.beside:
        measure_beside(args.beside, args)
    if args.device != "cpu":
        print(f"pinned at the end: {fl.cuda.memory_info()['pinned'] / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
