"""Two installations of fastlinalg measured by turns, each in processes of its own: is one slower than the other?

python benchmarks/by_turns.py OLD/bin/python NEW/bin/python --out benchmarks/results/compared/zen5-before-after.json
python benchmarks/by_turns.py OLD/bin/python NEW/bin/python --device cuda --set host --rounds 2

Operands are NumPy arrays of normal numbers and results go into existing arrays. A figure is the least time per call of
all blocks of a few milliseconds. Processes are made anew every round, because where the operands lie in memory makes up
to a tenth of a difference that stays for as long as the process does.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BLOCK_S, BLOCKS = 3e-3, 5
ARENA_FLOATS = 3 * 8192**2 + 4096
SLOWER = 1.03
Case = dict[str, Any]


# ---------------------------------------------------------------- what is measured
def _log_uniform(rng: random.Random, most: int) -> int:
    return round(math.exp(rng.uniform(0, math.log(most))))


def _random_products(count: int) -> Iterator[Case]:
    rng = random.Random(3)
    while count:
        m, n, k = (_log_uniform(rng, 4000) for _ in range(3))
        if m * n * k < 6e8:
            count -= 1
            yield {"m": m, "n": n, "k": k, "ta": rng.random() < 0.5, "tb": rng.random() < 0.5}


def cpu_cases() -> Iterator[Case]:
    """What the CPU backend is asked for, with one thread and two."""
    vectors = [(128, 128), (1024, 1024), (4096, 4096), (8192, 256), (256, 8192), (16384, 128), (100000, 16), (33, 77)]
    turned = [(64, 64), (200, 200), (512, 512), (1024, 1024), (2048, 512), (4096, 4096), (10007, 409), (10**6, 16)]
    for threads in (1, 2):
        for n in (128, 192, 256, 384, 512, 768, 1024, 1536, 2048):
            yield {"group": "K = 1024", "op": "sgemm", "m": n, "n": n, "k": 1024, "threads": threads}
        for n in (2, 8, 16, 32, 64, 100, 200):
            yield {"group": "cubes", "op": "sgemm", "m": n, "n": n, "k": n, "threads": threads}
        for shape in _random_products(50):
            yield {"group": "random", "op": "sgemm", **shape, "threads": threads}
        for m, n in vectors:
            for ta in (False, True):
                yield {"group": "sgemv", "op": "sgemv", "m": m, "n": n, "ta": ta, "threads": threads}
        for m, n in [*turned, (777, 3)]:
            yield {"group": "transpose", "op": "transpose", "m": m, "n": n, "threads": threads}


def host_cases() -> Iterator[Case]:
    """Products of NumPy arrays on a GPU."""
    for n in (16, 64, 256, 512, 1024, 2048, 4096, 8192):
        yield {"group": "host", "op": "sgemm", "m": n, "n": n, "k": n}
    for m, n in ((1024, 1024), (8192, 8192)):
        yield {"group": "host", "op": "sgemv", "m": m, "n": n}
        yield {"group": "host", "op": "transpose", "m": m, "n": n}


SETS = {"cpu": cpu_cases, "host": host_cases}


# ---------------------------------------------------------------- one process
class Arena:
    """Memory for the operands of one case after the other, in the same places in every process."""

    def __init__(self, floats: int) -> None:
        import numpy as np

        self._memory = np.empty(floats, np.float32)
        self._memory.fill(0)
        self._first = -(self._memory.ctypes.data // 4) % 1024  # of a page
        self._rng = np.random.default_rng(7)
        self._used = 0

    def clear(self) -> None:
        self._used = self._first

    def array(self, shape: tuple[int, ...], *, random: bool = True) -> Any:
        size = math.prod(shape)
        array = self._memory[self._used : self._used + size].reshape(shape)
        self._used += -(-size // 16) * 16 + 176  # on a line of its own, and not as far in its page as the one before
        if random:
            array[...] = self._rng.standard_normal(shape, dtype="f4")
        return array


def _call(case: Case, device: str, arena: Arena) -> Callable[[], object]:
    import fastlinalg as fl

    def matrix(rows: int, cols: int, transposed: bool) -> Any:
        return arena.array((cols, rows)).T if transposed else arena.array((rows, cols))

    arena.clear()
    m, n, ta = case["m"], case["n"], case.get("ta", False)
    if case["op"] == "transpose":
        a, turned = matrix(m, n, False), arena.array((n, m), random=False)
        return lambda: fl.transpose(a, out=turned, device=device)
    vector = case["op"] == "sgemv"
    a = matrix(m, n if vector else case["k"], ta)
    b = arena.array((n,)) if vector else matrix(case["k"], n, case.get("tb", False))
    out = arena.array((m,) if vector else (m, n), random=False)
    return lambda: fl.matmul(a, b, out=out, device=device)


def _least_us(call: Callable[[], object]) -> float:
    call()
    begin = time.perf_counter()
    call()
    count = max(1, int(BLOCK_S / max(time.perf_counter() - begin, 1e-7)))

    def block() -> float:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - begin) / count * 1e6

    return min(block() for _ in range(BLOCKS))


def measure(device: str) -> None:
    """Answer cases from standard input, a line each."""
    import fastlinalg as fl

    arena = Arena(ARENA_FLOATS)
    for line in sys.stdin:
        case = json.loads(line)
        if "threads" in case:
            fl.set_num_threads(case["threads"])
        print(_least_us(_call(case, device, arena)), flush=True)


# ---------------------------------------------------------------- both
def ask(python: str, device: str, cases: list[Case]) -> list[float]:
    command = [python, str(Path(__file__).resolve()), "--measure", "--device", device]
    text = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd="/")
    return [float(line) for line in done.stdout.split()]


def by_turns(pythons: list[str], device: str, cases: list[Case], rounds: int) -> list[list[float]]:
    """The least times of each case, for each of the two."""
    least = [[math.inf] * len(cases) for _ in pythons]
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            times = ask(pythons[which], device, cases)
            least[which] = [min(old, new) for old, new in zip(least[which], times, strict=True)]
    return least


def print_groups(rows: list[Case]) -> None:
    for group in dict.fromkeys((row["group"], row.get("threads")) for row in rows):
        ratios = [row["after_us"] / row["before_us"] for row in rows if (row["group"], row.get("threads")) == group]
        slower = sum(ratio > SLOWER for ratio in ratios)
        mean = statistics.geometric_mean(ratios)
        print(f"{group[0]:10} threads {group[1]}: {mean:.3f} of {len(ratios)}, {slower} slower by more than 3 %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", help="the interpreters of the two installations, the older one first")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", choices=SETS, default="cpu")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--names", nargs=2, default=["before", "after"], help="commits, for the result file")
    parser.add_argument("--machine", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options.device)
    cases = list(SETS[options.set]())
    before, after = by_turns(options.pythons, options.device, cases, options.rounds)
    rows = [
        {**case, "before_us": round(old, 3), "after_us": round(new, 3)}
        for case, old, new in zip(cases, before, after, strict=True)
    ]
    print_groups(rows)
    if options.out:
        about = {"before": options.names[0], "after": options.names[1], "machine": options.machine}
        about["command"] = f"benchmarks/by_turns.py --set {options.set} --device {options.device}"
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        options.out.write_text(json.dumps(about)[:-1] + ', "rows": [\n  ' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
