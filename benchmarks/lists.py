#!/usr/bin/env python3
"""Lists of products of random sizes: fl.grouped_matmul and its plan beside loops of fl.matmul and of PyTorch or NumPy.

benchmarks/lists.py                          on the first GPU, with PyTorch
benchmarks/lists.py --device cpu             NumPy arrays
benchmarks/lists.py --sizes log --counts 64  of one kind

Medians in microseconds until all results are there, and in brackets what the host has queued them in. Where pyg_lib is
installed its grouped matmul is measured too.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fastlinalg as fl

KINDS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "small": lambda rng, n: rng.integers(16, 257, (n, 3)),
    "log": lambda rng, n: np.exp(rng.uniform(np.log(16), np.log(2048), (n, 3))).astype(int),
    "uniform": lambda rng, n: rng.integers(16, 2049, (n, 3)),
    "large": lambda rng, n: rng.integers(1024, 4097, (n, 3)),
}


def measured(call: Callable[[], object], wait: Callable[[], object]) -> str:
    times: list[tuple[float, float]] = []
    for _ in range(6):  # the last of them record graphs
        call()
    wait()
    end = time.perf_counter() + 0.2
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 100):
        start = time.perf_counter()
        call()
        queued = time.perf_counter()
        wait()
        times.append((time.perf_counter() - start, queued - start))
    whole, host = (statistics.median(side) * 1e6 for side in zip(*times, strict=True))
    return f"{whole:.0f} ({host:.0f})"


def contenders(a: list[Any], b: list[Any], out: list[Any], device: str) -> dict[str, Callable[[], object]]:
    pairs = list(zip(a, b, out, strict=True))
    calls: dict[str, Callable[[], object]] = {}
    if device == "cpu":
        calls["numpy"] = lambda: [np.matmul(x, y, out=z) for x, y, z in pairs]
    else:
        import torch

        calls["torch.mm"] = lambda: [torch.mm(x, y, out=z) for x, y, z in pairs]
        if importlib.util.find_spec("pyg_lib"):
            import pyg_lib

            calls["pyg_lib"] = lambda: pyg_lib.ops.grouped_matmul(a, b)
    options = {"device": "cpu"} if device == "cpu" else {}
    for precision in ("accurate", "strict"):
        of = options | {"precision": precision}
        calls[f"{precision}: loop"] = lambda of=of: [fl.matmul(x, y, z, **of) for x, y, z in pairs]
        calls[f"{precision}: grouped"] = lambda of=of: fl.grouped_matmul(a, b, out, **of)
        calls[f"{precision}: plan"] = fl.GroupedMatmul(a, b, out=out, **of).execute
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--sizes", choices=KINDS, nargs="+", default=list(KINDS))
    parser.add_argument("--counts", type=int, nargs="+", default=[8, 64, 512])
    options = parser.parse_args()
    place, wait = (lambda x: x), (lambda: None)
    if options.device == "cuda":
        import torch

        torch.set_float32_matmul_precision("highest")
        place, wait = (lambda x: torch.from_numpy(x).cuda()), torch.cuda.synchronize
    for kind in options.sizes:
        for count in options.counts:
            rng = np.random.default_rng(count)
            sizes = KINDS[kind](rng, count)
            a, b, out = (
                [place(rng.standard_normal((int(s[i]), int(s[j])), np.float32)) for s in sizes]
                for i, j in ((0, 2), (2, 1), (0, 1))
            )
            for name, call in contenders(a, b, out, options.device).items():
                print(f"{kind} {count} {name}: {measured(call, wait)}", flush=True)


if __name__ == "__main__":
    main()
