"""Whole calls of fastlinalg beside each other, by turns: a table of cases for `fastlinalg.bench.timing`.

    python benchmarks/calls.py conversion [--device cpu] [--sizes 512,4096] [--rounds 15] [--json FILE]

conversion   operands of other types with dtype=np.float32, and converted by `astype` first, beside float32
cost         what a call on device arrays costs on the host: by `out=`, through a plan, and of PyTorch and CuPy
small-lists, log-lists, uniform-lists, large-lists
             so many products of random sizes (`LISTS`): fl.grouped_matmul and its plan beside loops, of NumPy's matmul
             or PyTorch's mm first; on a GPU until all results are there, and until they are queued
nearest      which of 60000 vectors of 784 numbers is nearest to each of so many, on the CPU: NumPy's products and ours
linear       a layer of 1024 to 4096 for so many rows: PyTorch's and ours, on the CPU with FASTLINALG_DEVICE=cpu

Microseconds are medians, ratios to the first contender medians over rounds. Matrices of normal numbers, square ones but
in lists, results in arrays that are there before. Threads that call at once and several GPUs are in `fastlinalg bench
host`.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import fastlinalg as fl
from fastlinalg.bench import machine, records
from fastlinalg.bench.operands import fill_normal
from fastlinalg.bench.timing import Plan, Quiet, alternating

Call = Callable[[], object]
Cases = Iterator[tuple[str, Call]]
NO_LIMIT_US = 1e12  # all contenders take part in all rounds
DRAINED = Quiet(rest_us=5e3)  # a device has done what it was given before the next contender has its turn


def matrix(n: int, seed: int) -> np.ndarray:
    found = np.empty((n, n), np.float32)
    fill_normal(found.reshape(-1), seed)
    return found


def conversion(n: int, device: str) -> Cases:
    a, b, out = 30 * matrix(n, 1), 30 * matrix(n, 2), matrix(n, 3)
    yield "float32", lambda: fl.matmul(a, b, out, device=device)
    for dtype in ("float64", "float16", "int32", "int8"):
        x, y = a.astype(dtype), b.astype(dtype)
        yield dtype, lambda x=x, y=y: fl.matmul(x, y, out, device=device, dtype=np.float32)
    x, y = a.astype(np.float64), b.astype(np.float64)
    yield "astype", lambda: fl.matmul(x.astype(np.float32), y.astype(np.float32), out, device=device)


def cost(n: int, _: str) -> Cases:
    put: dict[str, Callable[[Any], Any]] = {"DeviceArray": fl.DeviceArray.from_numpy}
    theirs = {"torch": "mm", "cupy": "matmul"}
    for name in theirs:
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        put[name] = (lambda x, torch=library: torch.from_numpy(x).cuda()) if name == "torch" else library.asarray
    for name, copy in put.items():
        a, b, out = (copy(matrix(n, seed)) for seed in range(3))
        yield f"{name}, fl.matmul", lambda a=a, b=b, out=out: fl.matmul(a, b, out)
        yield f"{name}, plan", fl.Matmul(a, b, out=out).execute
        if name in theirs:
            multiply = getattr(importlib.import_module(name), theirs[name])
            yield f"{name}, {theirs[name]}", lambda a=a, b=b, out=out, call=multiply: call(a, b, out=out)


LISTS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "small": lambda rng, n: rng.integers(16, 257, (n, 3)),
    "log": lambda rng, n: np.exp(rng.uniform(np.log(16), np.log(2048), (n, 3))).astype(int),
    "uniform": lambda rng, n: rng.integers(16, 2049, (n, 3)),
    "large": lambda rng, n: rng.integers(1024, 4097, (n, 3)),
}


def lists(kind: str, count: int, device: str) -> Cases:
    rng, put, options = np.random.default_rng(count), (lambda x: x), {"device": "cpu"}
    if device == "cuda":
        torch = importlib.import_module("torch")
        torch.set_float32_matmul_precision("highest")
        put, options = (lambda x: torch.from_numpy(x).cuda()), {}
    multiply, sizes = torch.mm if device == "cuda" else np.matmul, LISTS[kind](rng, count)
    numbers = rng.standard_normal(sizes.max() ** 2, np.float32)  # the same ones in all of them
    a, b, out = (
        [put(numbers[: s[i] * s[j]].reshape(s[i], s[j]).copy()) for s in sizes] for i, j in ((0, 2), (2, 1), (0, 1))
    )
    products = list(zip(a, b, out, strict=True))
    calls: dict[str, Call] = {multiply.__name__: lambda: [multiply(x, y, out=z) for x, y, z in products]}
    if device == "cuda" and importlib.util.find_spec("pyg_lib"):
        calls["pyg_lib"] = lambda: importlib.import_module("pyg_lib").ops.grouped_matmul(a, b)
    for precision in ("accurate", "strict"):
        of: Any = options | {"precision": precision}
        calls[f"{precision}, loop"] = lambda of=of: [fl.matmul(x, y, z, **of) for x, y, z in products]
        calls[f"{precision}, grouped"] = lambda of=of: fl.grouped_matmul(a, b, out, **of)
        calls[f"{precision}, plan"] = fl.GroupedMatmul(a, b, out=out, **of).execute
    for name, call in calls.items():
        yield name, call if device == "cpu" else lambda call=call: (call(), torch.cuda.synchronize())
        if device == "cuda":
            yield f"{name}, queued", call


def nearest(n: int, _: str) -> Cases:
    rng = np.random.default_rng(n)
    base, x = rng.random((60000, 784), np.float32), rng.random((n, 784), np.float32)
    halves, out = np.square(base).sum(axis=1) / 2, np.empty((n, len(base)), np.float32)
    plan = fl.Matmul(x, base.T, out=out, constant="b", device="cpu")
    calls: dict[str, Call] = {"np.matmul": lambda: np.matmul(x, base.T, out=out), "plan, kept": plan.execute}
    for precision in ("accurate", "strict"):
        of: Any = {"device": "cpu", "precision": precision}
        calls[f"fl.matmul, {precision}"] = lambda of=of: fl.matmul(x, base.T, out, **of)
    for name, product in calls.items():
        yield name, lambda product=product: (product(), np.subtract(out, halves, out=out).argmax(axis=1))
        yield f"{name}, alone", product


def linear(n: int, _: str) -> Cases:
    torch, ours = importlib.import_module("torch"), importlib.import_module("fastlinalg.torch")
    x, weight, bias = torch.randn(n, 1024), torch.randn(4096, 1024), torch.randn(4096)
    for name, call in (("torch", torch.nn.functional.linear), ("fastlinalg.torch", ours.linear)):
        yield name, torch.no_grad()(functools.partial(call, x, weight, bias))
    strict = functools.partial(ours.linear, x, weight, bias, precision="strict")
    yield "fastlinalg.torch, strict", torch.no_grad()(strict)


WHAT: dict[str, tuple[Callable[[int, str], Cases], str]] = {
    "conversion": (conversion, "512,1024,2048,4096"),
    "cost": (cost, "32"),
    "nearest": (nearest, "256"),
    "linear": (linear, "64,512,4096"),
    **{f"{kind}-lists": (functools.partial(lists, kind), "8,64,512") for kind in LISTS},
}


def measure(what: str, n: int, device: str, rounds: int) -> Iterator[dict[str, Any]]:
    found = alternating(dict(WHAT[what][0](n, device)), Plan(rounds, NO_LIMIT_US), DRAINED)
    first = next(iter(found.values()))
    for name, timing in found.items():
        yield {"n": n, "call": name, "us": timing.median, "times_of_first": 1 / timing.speed_against(first)}


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def report(rows: Iterable[dict[str, Any]], line: str, path: str | None, device: str) -> None:
    """Prints rows as they come, and writes all of them to the file, if there is one, with what measured them."""
    kept = []
    for row in rows:
        print(line.format(**row), flush=True)
        kept.append(row)
    if path:
        described = machine.describe(device, 0.0, fl.get_num_threads())
        records.write(path, machine.head(["python", *sys.argv], described) | {"rows": kept})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if fl.cuda.is_available() else "cpu")
    parser.add_argument("--sizes")
    args = parse(parser)
    sizes = map(int, (args.sizes or WHAT[args.what][1]).split(","))
    rows = (row for n in sizes for row in measure(args.what, n, args.device, args.rounds))
    report(rows, "{n:6} {call:24} {us:12.2f} us {times_of_first:8.3f}", args.json, args.device)


if __name__ == "__main__":
    main()
