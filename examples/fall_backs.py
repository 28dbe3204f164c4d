"""Who computes an accurate product is decided on the device, by the data: what the log says of four kinds of it.

Large products of ordinary numbers go through two fp16 terms. Numbers that these cannot hold go through three bf16
terms, and what no terms can hold through plain float32. Each result is checked on some rows against float64.

Run: python examples/fall_backs.py   (needs a GPU of compute capability 9.0)
"""

from __future__ import annotations

import logging
import sys

import numpy as np

import fastlinalg as fl

N, K = 2052, 4096  # a shape is logged once in a row: each kind gets an m of its own


def operands(kind: str, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(m)
    a, b = rng.standard_normal((m, K), np.float32), rng.standard_normal((K, N), np.float32)
    if kind == "graded":  # (A D)(D^-1 B): small numbers of A meet large ones of B
        steps = (2.0 ** rng.integers(-60, 61, K)).astype(np.float32)
        return a * steps, b / steps[:, None]
    if kind == "180 octaves":
        a, b = ((2.0 ** rng.uniform(-140, 40, x.shape)).astype(np.float32) for x in (a, b))
    if kind == "an infinity":
        a[3, 5] = np.inf
    return a, b


def main() -> int:
    if not any(row.available for row in fl.kernels("sgemm") if row.name == "fp16x2"):
        print("fp16x2 does not run here: it needs a GPU of compute capability 9.0")
        return 0
    logging.basicConfig(level=logging.DEBUG, format="%(message)s", stream=sys.stdout)
    logging.getLogger("fastlinalg").addFilter(lambda record: "computed by" in record.getMessage())
    for m, kind in enumerate(("normal", "graded", "180 octaves", "an infinity"), start=2048):
        a, b = operands(kind, m)
        print(f"{kind}:", flush=True)
        c = fl.matmul(fl.DeviceArray.from_numpy(a), fl.DeviceArray.from_numpy(b)).numpy()
        rows = [0, 1, m - 1]
        left, right = a[rows].astype(np.float64), b.astype(np.float64)
        bound = K * 2.0**-24 / (1 - K * 2.0**-24) * (abs(left) @ abs(right))
        worst = (abs(c[rows] - left @ right) / bound).max()
        print(f"    largest error {worst:.2g} of the bound")
        assert worst <= 1, kind
    return 0


if __name__ == "__main__":
    sys.exit(main())
