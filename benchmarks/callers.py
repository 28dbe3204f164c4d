"""Threads that multiply on the CPU at once, each on operands of its own, beside one thread that has all cores.

    python benchmarks/callers.py [--sizes 256,512,768,1024,2048] [--callers 2,4] [--rounds 9]

Milliseconds a call, medians over rounds in which the numbers of callers take turns: the time of all calls divided by
their number. Ratios are those of the total rate to one caller's, medians over rounds, so that a clock that changes from
round to round does not count. "alone": as many callers as there are cores, told to use one thread each, which is what
sharing the cores could reach.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import fastlinalg as fl
from fastlinalg.bench.timing import Plan, alternating

SAMPLE_S, RATE = 0.15, 1e11  # of each sample, and what a call's time is guessed from
NO_LIMIT_US = 1e12  # every contender takes part in all rounds


def operands(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    return [a, b, np.empty((n, n), np.float32)]


def sample(callers: list[list[np.ndarray]], threads: int, count: int) -> Callable[[], None]:
    def multiply(own: list[np.ndarray]) -> None:
        a, b, out = own
        for _ in range(count):
            fl.matmul(a, b, out=out, device="cpu")

    def together() -> None:
        with fl.num_threads(threads), ThreadPoolExecutor(len(callers)) as pool:
            list(pool.map(multiply, callers))

    return together


def measure(n: int, numbers: list[int], rounds: int) -> None:
    rng, cores = np.random.default_rng(n), fl.get_num_threads()
    own = [operands(n, rng) for _ in range(max(*numbers, cores))]
    count = max(2, int(SAMPLE_S * RATE / (2.0 * n**3)))
    cases = {"1 caller": (1, cores)} | {f"{callers} callers": (callers, cores) for callers in numbers}
    cases["alone"] = (cores, 1)
    calls = {name: sample(own[:callers], threads, count) for name, (callers, threads) in cases.items()}
    found = alternating(calls, Plan(rounds, NO_LIMIT_US))
    for name, (callers, _) in cases.items():
        ratio = callers * found[name].speed_against(found["1 caller"])
        print(f"{n:6} {name:>10}  {found[name].median / (1e3 * count * callers):9.3f} ms  {ratio:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="256,512,768,1024,2048")
    parser.add_argument("--callers", default="2,4")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    for size in arguments.sizes.split(","):
        measure(int(size), [int(number) for number in arguments.callers.split(",")], arguments.rounds)


if __name__ == "__main__":
    main()
