"""A matrix times its own transpose beside the product with another matrix, in both precisions, on a GPU.

    python benchmarks/symmetric.py [--random 60] [--seed 60] [--json FILE]

Microseconds in CUDA graphs on PyTorch's tensors, medians; the two by turns. Results are compared with float64 on some
rows, and with their own transpose: where one triangle is computed they are exactly symmetric.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import fastlinalg as fl
from fastlinalg.bench import machine, records

FIXED = [(n, 1024) for n in (128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384)]
FIXED += [(4096, 4096), (8192, 8192)]
MOST_OPERATIONS = 2.4e12
BLOCK_US, ROUNDS, SAMPLES = 3000, 2, 5


def shapes(count: int, seed: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    drawn = np.exp(rng.uniform(np.log(16), np.log([16384, 8192]), (count, 2))).astype(int)
    return FIXED + [(n, k) for n, k in drawn.tolist() if 2 * n * n * k <= MOST_OPERATIONS]


def time_us(call: Callable[[], object], about_us: float) -> list[float]:
    launches = max(1, min(20, int(BLOCK_US / about_us)))
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    found = []
    with torch.cuda.stream(stream):
        call()
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(launches):
                call()
        graph.replay()
        for _ in range(SAMPLES):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record(stream)
            graph.replay()
            end.record(stream)
            end.synchronize()
            found.append(begin.elapsed_time(end) / launches * 1e3)
    return found


def units(c: torch.Tensor, a: torch.Tensor) -> float:
    """The largest error over |A||A^T|, in units of 2^-24, of some rows."""
    rows = torch.arange(0, len(a), max(1, len(a) // 97), device="cuda")
    x = a.double()
    return ((c[rows].double() - x[rows] @ x.T).abs() / (x[rows].abs() @ x.abs().T)).max().item() * 2**24


def measure(n: int, k: int, precision: str) -> dict:
    a, b, c = (torch.randn(n, columns, device="cuda") for columns in (k, k, n))

    def product(other: torch.Tensor) -> Callable[[], object]:
        return lambda: fl.matmul(a, other.T, out=c, precision=precision, stream=torch.cuda.current_stream())

    own, general = product(a), product(b)
    own()
    torch.cuda.synchronize()
    row = {"n": n, "k": k, "precision": precision, "symmetric": torch.equal(c, c.T), "units": round(units(c, a), 2)}
    about = max(5.0, 2.0 * n * n * k / (1.5e8 if precision == "accurate" else 5e7))
    times: dict[str, list[float]] = {"own_us": [], "general_us": []}
    for _ in range(ROUNDS):
        times["general_us"] += time_us(general, about)
        times["own_us"] += time_us(own, about)
    row |= {name: round(statistics.median(samples), 2) for name, samples in times.items()}
    return row | {"ratio": round(row["general_us"] / row["own_us"], 3)}


def main() -> int | str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=60, help="shapes beside the fixed ones (default: 60)")
    parser.add_argument("--seed", type=int, default=60)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if not torch.cuda.is_available() or not fl.cuda.is_available():
        return "symmetric needs a CUDA device"
    rows = []
    for n, k in shapes(args.random, args.seed):
        for precision in ("accurate", "strict"):
            rows.append(measure(n, k, precision))
            print(" ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    for precision in ("accurate", "strict"):
        ratios = [row["ratio"] for row in rows if row["precision"] == precision]
        print(f"{precision}: geometric mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios)}")
    if args.json:
        head = {"commit": machine.commit(), "version": fl.__version__, "torch": torch.__version__}
        records.write(args.json, head | {"device": fl.devices()[0], "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
