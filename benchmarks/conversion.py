"""Whole calls on NumPy operands of other types with `dtype=np.float32`, beside the same calls on float32.

    python benchmarks/conversion.py --json FILE [--device cpu] [--shapes 512,4096]

Contenders take turns; every time is a median of calls with `out=`, in milliseconds. "astype" converts with NumPy first.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

import fastlinalg as fl
from fastlinalg.bench import machine, records

DTYPES = ("float64", "float16", "int32", "int8")
SECONDS = 0.5  # for each contender of a shape, about
FEWEST, MOST = 5, 60


def milliseconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def by_turns(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    first = {name: min(milliseconds(call), milliseconds(call)) for name, call in calls.items()}
    rounds = max(FEWEST, min(MOST, int(1e3 * SECONDS * len(calls) / sum(first.values()))))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(milliseconds(call))
    return {name: statistics.median(times) for name, times in samples.items()}


def measure(n: int, device: str) -> dict[str, object]:
    rng = np.random.default_rng(n)
    a, b = (rng.standard_normal((n, n), dtype=np.float32) * 30 for _ in range(2))
    out = np.empty((n, n), np.float32)
    pairs = {dtype: (a.astype(dtype), b.astype(dtype)) for dtype in DTYPES}
    calls: dict[str, Callable[[], object]] = {"float32": lambda: fl.matmul(a, b, out, device=device)}
    for dtype, (x, y) in pairs.items():
        calls[dtype] = lambda x=x, y=y: fl.matmul(x, y, out, device=device, dtype=np.float32)
    x, y = pairs["float64"]
    calls["astype"] = lambda: fl.matmul(x.astype(np.float32), y.astype(np.float32), out, device=device)
    times = by_turns(calls)
    ratios = {name: ms / times["float32"] for name, ms in times.items()}
    print(n, " ".join(f"{name} {ms:.3f} ({ratios[name]:.2f})" for name, ms in times.items()), flush=True)
    return {"n": n, "ms": times, "times_of_float32": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if fl.cuda.is_available() else "cpu")
    parser.add_argument(
        "--shapes", type=lambda text: [int(n) for n in text.split(",")], default=[512, 1024, 2048, 4096]
    )
    arguments = parser.parse_args()
    described = machine.describe(arguments.device, 0.0, fl.get_num_threads())
    rows = [measure(n, arguments.device) for n in arguments.shapes]
    records.write(arguments.json, {"commit": machine.commit(), "machine": described, "rows": rows})


if __name__ == "__main__":
    main()
