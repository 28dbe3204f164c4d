"""Errors of float32 products on a GPU against float64, beside cuBLAS's, over the length K of the sums.

python benchmarks/accuracy.py --json accuracy.json

Needs PyTorch with CUDA, which brings cuBLAS and the products in float64.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any

import fastlinalg as fl
from fastlinalg.bench import machine, records

UNIT = 2.0**-24
SWEEP = tuple(2**i for i in range(6, 17))  # of K, at M = N = 1024
FEW = (64, 1024, 8192, 65536)  # of K, at the other sizes
SIZES = (128, 256, 384, 512, 768, 2048, 4096)
TIE = 1.01  # float32 chains of one length in two orders differ by less
CUBLAS, TF32, DISPATCH = "cuBLAS float32", "cuBLAS TF32", "dispatch"
OURS = (DISPATCH, "fp16x2", "bf16x6", "strict")


def kinds() -> dict[str, Callable[[Any, tuple[int, int]], Any]]:
    """Operands by name, made of a generator and a shape in device memory."""
    import torch

    def normal(g: Any, shape: tuple[int, int]) -> Any:
        return torch.randn(shape, generator=g, device="cuda", dtype=torch.float32)

    def uniform(g: Any, shape: tuple[int, int]) -> Any:
        return torch.rand(shape, generator=g, device="cuda", dtype=torch.float32)

    def with_signs(g: Any, x: Any) -> Any:
        return torch.where(uniform(g, x.shape) < 0.5, -x, x)

    def decades(g: Any, shape: tuple[int, int]) -> Any:
        return (10.0 ** (12.0 * uniform(g, shape).double() - 6.0)).float()

    return {
        "normal": normal,
        "uniform(0, 1)": uniform,
        "exp(normal)": lambda g, shape: normal(g, shape).exp(),
        "12 decades": decades,
        "exp(normal) with signs": lambda g, shape: with_signs(g, normal(g, shape).exp()),
        "12 decades with signs": lambda g, shape: with_signs(g, decades(g, shape)),
    }


def contenders() -> dict[str, Callable[[Any, Any], Any]]:
    import torch

    def torch_mm(tf32: bool) -> Callable[[Any, Any], Any]:
        def call(a: Any, b: Any) -> Any:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            return torch.mm(a, b)

        return call

    def ours(name: str) -> Callable[[Any, Any], Any]:
        options: Any = {DISPATCH: {}, "strict": {"precision": "strict"}}.get(name, {"kernel": name})
        return lambda a, b: fl.sgemm(a, b, **options)

    return {CUBLAS: torch_mm(False), TF32: torch_mm(True), **{name: ours(name) for name in OURS}}


def errors_of(product: Any, exact: Any, magnitude: Any) -> dict[str, float]:
    error = product.double() - exact
    units = error / (magnitude * UNIT)  # of u |A||B|
    return {
        "norm": float(error.norm() / exact.norm()),
        "largest": float(units.abs().max()),
        "mean": float(units.mean()),
    }


def measure(sizes: list[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """One row for every kind of data and size (M = N, K): the errors of each contender."""
    import torch

    calls = contenders()
    for kind, make in kinds().items():
        for size, k in sizes:
            generator = torch.Generator("cuda").manual_seed(size + k)
            a, b = make(generator, (size, k)), make(generator, (k, size))
            exact, magnitude = a.double() @ b.double(), a.abs().double() @ b.abs().double()
            errors = {name: errors_of(call(a, b), exact, magnitude) for name, call in calls.items()}
            yield {"data": kind, "size": size, "k": k, "errors": errors}


def document(sizes: list[tuple[int, int]]) -> dict[str, Any]:
    import torch

    described = machine.describe("cuda", float(fl.devices()[0]["peak_gflops"]), fl.get_num_threads())
    peers = {"torch": torch.__version__, "cuda": torch.version.cuda}
    return {**machine.head(["python", *sys.argv], described), "peers": peers, "rows": list(measure(sizes))}


def worse_than_cublas(found: dict[str, Any]) -> list[str]:
    """Where dispatch has the larger norm of the error, ties aside."""
    worse = []
    for row in found["rows"]:
        norm, cublas = (row["errors"][name]["norm"] for name in (DISPATCH, CUBLAS))
        if norm > TIE * cublas:
            worse.append(f"{row['data']}, {row['size']}x{row['size']}x{row['k']}: {norm:.3g}, cuBLAS {cublas:.3g}")
    return worse


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write all errors and the machine")
    args = parser.parse_args()
    found = document([(1024, k) for k in SWEEP] + [(size, k) for size in SIZES for k in FEW])
    if args.json:
        records.write(args.json, found)
    worse = worse_than_cublas(found)
    print("\n".join(["larger than cuBLAS's in norm:", *worse] if worse else ["nowhere larger than cuBLAS's in norm"]))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
