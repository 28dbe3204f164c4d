"""Products of NumPy arrays on all GPUs of this machine beside one of them, by turns.

    python benchmarks/several_devices.py [--sizes 8192,16384,16384:1024,32768:4096,32768] [--pinned] [--rounds 3]
        [--precision accurate,strict]

Milliseconds of whole calls into one array, medians. A size is n, of n x n x n, or n:k. The largest has so many rounds,
smaller ones more. --pinned: operands and result in pinned memory, by CuPy. The limits of the same host are what
benchmarks/host_limits.py prints.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import fastlinalg as fl
from fastlinalg.bench.operands import fill_normal
from fastlinalg.bench.timing import Plan, alternating

NO_LIMIT_US = 1e12  # both take part in all rounds
MOST_ROUNDS = 10


def matrix(rows: int, cols: int, pinned: bool) -> np.ndarray:
    if pinned:
        import cupy

        x = np.frombuffer(cupy.cuda.alloc_pinned_memory(4 * rows * cols), np.float32, rows * cols).reshape(rows, cols)
    else:
        x = np.empty((rows, cols), np.float32)
    fill_normal(x.reshape(-1), rows)
    return x


def measure(n: int, k: int, rounds: int, args: argparse.Namespace) -> None:
    a, b, out = (matrix(rows, cols, args.pinned) for rows, cols in ((n, k), (k, n), (n, n)))
    for precision in args.precision.split(","):
        calls = {
            device: lambda device=device, precision=precision: fl.matmul(a, b, out, device=device, precision=precision)
            for device in ("cuda:0", "cuda:all")
        }
        found = alternating(calls, Plan(rounds, NO_LIMIT_US))
        one, several = (1e-3 * found[device].median for device in calls)
        print(f"{n} x {n}, k = {k}, {precision}: one {one:.2f} ms, all {several:.2f} ms, {one / several:.2f} times")
        sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="8192,16384,16384:1024,32768:4096,32768")
    parser.add_argument("--precision", default="accurate,strict")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pinned", action="store_true")
    args = parser.parse_args()
    if len(fl.devices()) < 2:
        print("fewer than two CUDA devices here")
        return 0
    sizes = [tuple(map(int, size.split(":"))) for size in args.sizes.split(",")]
    largest = max(n for n, *_ in sizes)
    for n, *k in sizes:
        measure(n, *(k or [n]), min(MOST_ROUNDS, args.rounds * largest // n), args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
