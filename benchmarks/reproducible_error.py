"""Errors over K of precision="reproducible", of one chain of FMAs in ascending k and of NumPy's product, on the CPU.

One chain is what ``precision="strict"`` computes on a GPU where it does not cut k. For each K: the norm of the error by
that of the product, and the largest error by 2^-24 (|A| |B|).

    python benchmarks/reproducible_error.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import fastlinalg as fl

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.fused import fused

SIZE = 48
DATA = {"normal": lambda rng, *shape: rng.standard_normal(shape), "uniform": lambda rng, *shape: rng.random(shape)}


def one_chain(a, b):
    total = np.zeros((SIZE, SIZE), np.float32)
    for k in range(a.shape[1]):
        total = fused(a[:, k : k + 1], b[k : k + 1], total)
    return total


def main() -> None:
    rng = np.random.default_rng(1)
    print("data, K: norm and largest error of reproducible, one chain, NumPy")
    for name, make in DATA.items():
        for k in (256, 1024, 4096, 16384, 65536):
            a, b = make(rng, SIZE, k).astype(np.float32), make(rng, k, SIZE).astype(np.float32)
            exact = a.astype(np.float64) @ b.astype(np.float64)
            bound = 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
            errors = [
                x - exact for x in (fl.matmul(a, b, precision="reproducible", device="cpu"), one_chain(a, b), a @ b)
            ]
            norms = (f"{np.linalg.norm(e) / np.linalg.norm(exact):.1e} {(np.abs(e) / bound).max():.2f}" for e in errors)
            print(f"{name}, {k}: {', '.join(norms)}", flush=True)


if __name__ == "__main__":
    main()
