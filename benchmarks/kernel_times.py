"""Times of every kernel on a fixed list of shapes, from which ``tools/fit_costs`` fits the costs of the kernel table.

python benchmarks/kernel_times.py --out benchmarks/results/costs/h200-kernels.json
python benchmarks/kernel_times.py --ops transpose --shapes 20 --out few.json
FASTLINALG_COMPUTE_CAPABILITY=8.0 python benchmarks/kernel_times.py --ops sgemm --out h200-as-8.0-kernels.json
python benchmarks/kernel_times.py --random --near 1.6 --shapes 400 --out h200-kernels-random.json
python benchmarks/kernel_times.py --against cublas --shapes 400 --seed 3 --out h200-random.json

Operands are normal numbers in device memory; a time is the median of replays of a CUDA graph. Left out are kernels that
cannot take the operands, those whose estimate is far from the best one's, and most shapes for the kernels of the
ladder. A run with the defaults takes about four minutes and ends after ``--seconds`` whatever is left. ``--random``
takes strict products of the sizes that ``fastlinalg bench sgemm --random`` draws. ``--against`` times, on those sizes,
what dispatch takes, ``accurate`` and ``strict``, and such a library, and prints the slowest shapes.
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import fastlinalg as fl
from fastlinalg import _core
from fastlinalg.bench import machine, peers, problems, records
from fastlinalg.bench.peer import DeviceOperand
from fastlinalg.bench.problems import STANDARD_K, STANDARD_SIZES

SEED = 14
OPS = ("sgemm", "sgemv", "transpose")
LADDER_EVERY = 10  # shapes
FAR, FAR_EVERY = 5.0, 3  # estimates so many times the best one: measured on every third shape
TOO_FAR = 20.0  # and never
CLOSE = 2.5  # strict kernels in a product that need not be strict
BLOCK_US, MOST_LAUNCHES, REPLAYS = 1500.0, 40, 3
SAVED_EVERY = 50  # shapes
MOST_OPERAND, MOST_RESULT = 2**27, 2**28  # floats
MOST_FLOPS, MOST_STREAMED = 5e10, 2**27  # of random shapes


@dataclass(frozen=True)
class Shape:
    """One call. The operands are row-major as stored, `trans_a` and `trans_b` say which are transposed.

    ``sgemm``: ``C[m,n] = op(A) @ op(B)``. ``sgemv``: A is stored as m x n. ``transpose``: ``B[n,m] = A[m,n].T``.
    `pad`: floats between the rows of each operand. `offset`: floats behind an aligned address.
    """

    op: str
    m: int
    n: int
    k: int = 0
    batch: int = 1
    trans_a: bool = False
    trans_b: bool = False
    pad: tuple[int, int, int] = (0, 0, 0)
    offset: tuple[int, int, int] = (0, 0, 0)
    precision: str = "strict"

    @property
    def contiguous(self) -> bool:
        return not any(self.pad) and not any(self.offset)

    def stored(self) -> list[tuple[int, int]]:
        """Rows and columns of the operands and the result; of a vector one row."""
        m, n, k = self.m, self.n, self.k
        if self.op == "sgemm":
            return [(k, m) if self.trans_a else (m, k), (n, k) if self.trans_b else (k, n), (m, n)]
        if self.op == "sgemv":
            return [(m, n), (1, m if self.trans_a else n), (1, n if self.trans_a else m)]
        return [(m, n), (0, 0), (n, m)]

    def leading(self) -> list[int]:
        return [columns + pad for (_, columns), pad in zip(self.stored(), self.pad, strict=True)]

    def floats(self) -> list[int]:
        rows = [rows for rows, _ in self.stored()]
        return [
            self.batch * r * ld + offset for r, ld, offset in zip(rows, self.leading(), self.offset, strict=True)
        ]  # fmt: skip


# ---------------------------------------------------------------- the shapes
def _size(rng: np.random.Generator, largest: int, least: int = 1) -> int:
    return int(math.exp(rng.uniform(math.log(least), math.log(largest + 1.0))))


def _flags(rng: np.random.Generator) -> tuple[bool, bool]:
    first, second = (bool(flag) for flag in rng.integers(0, 2, 2))
    return first, second


def _uneven(rng: np.random.Generator) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Pads and offsets: none in half of the cases, else small ones of any alignment."""
    if rng.random() < 0.5:
        return (0, 0, 0), (0, 0, 0)
    pads, offsets = rng.integers(0, 9, 3), rng.integers(0, 4, 3)
    return tuple(int(x) for x in pads), tuple(int(x) for x in offsets)  # type: ignore[return-value]


def _product(rng: np.random.Generator, kind: int) -> Shape:
    trans_a, trans_b = _flags(rng)
    if kind == 0:  # small
        sizes, batch = [_size(rng, 256) for _ in range(3)], 1
    elif kind == 1:  # many small ones
        sizes, batch = [_size(rng, 160, 4) for _ in range(3)], _size(rng, 4096, 2)
    elif kind == 2:  # few rows or columns
        sizes, batch = [_size(rng, 100_000, 64), _size(rng, 24), _size(rng, 8192, 8)], 1
        sizes = [sizes[1], sizes[0], sizes[2]] if rng.random() < 0.5 else sizes
    elif kind == 3:  # whole tiles
        sizes, batch = [32 * _size(rng, 128) for _ in range(3)], 1
        trans_a = trans_b = False
    elif kind == 4:  # long sums
        sizes, batch = [_size(rng, 700, 8), _size(rng, 700, 8), _size(rng, 65536, 2048)], 1
    else:
        sizes, batch = [_size(rng, 8192, 8) for _ in range(3)], 1
    pad, offset = ((0, 0, 0), (0, 0, 0)) if kind in (1, 3) else _uneven(rng)
    return Shape("sgemm", *sizes, batch=batch, trans_a=trans_a, trans_b=trans_b, pad=pad, offset=offset)


def _streamed(op: str, rng: np.random.Generator, kind: int) -> Shape:
    if kind == 0:
        sizes = [_size(rng, 131_072), _size(rng, 64)]
    elif kind == 1:
        sizes = [_size(rng, 64), _size(rng, 131_072)]
    elif kind == 2:
        sizes = [_size(rng, 1024, 8), _size(rng, 1024, 8)]
    else:
        sizes = [_size(rng, 16384, 16), _size(rng, 16384, 16)]
    batch = _size(rng, 512, 2) if kind == 2 and rng.random() < 0.5 else 1
    trans, _ = _flags(rng)
    pad, offset = ((0, 0, 0), (0, 0, 0)) if batch > 1 else _uneven(rng)
    pad = (pad[0], 0, pad[2] if op == "transpose" else 0)
    offset = (offset[0], offset[1] if op == "sgemv" else 0, offset[2])
    return Shape(op, *sizes, batch=batch, trans_a=trans and op == "sgemv", pad=pad, offset=offset)


def _standard(op: str) -> list[Shape]:
    if op == "sgemm":
        return [Shape(op, size, size, STANDARD_K) for size in STANDARD_SIZES]
    if op == "sgemv":
        return [Shape(op, 16384, n, trans_a=trans) for n in (16, 32, 128) for trans in (False, True)]
    return [Shape(op, 2048, 512), Shape(op, 8192, 8192), Shape(op, 8192, 8192, pad=(1, 0, 1))]


def _fits(shape: Shape) -> bool:
    a, b, c = shape.floats()
    work = 2.0 * shape.m * shape.n * shape.k * shape.batch
    most = MOST_OPERAND if shape.op == "sgemm" else MOST_STREAMED
    return max(a, b) <= most and c <= MOST_RESULT and work <= MOST_FLOPS


def shapes(op: str, count: int, seed: int) -> list[Shape]:
    """The fixed list: the standard shapes, and random ones of every kind by turns."""
    rng = np.random.default_rng([seed, OPS.index(op)])
    found = _standard(op)
    kinds = 6 if op == "sgemm" else 4
    while len(found) < count:
        kind = len(found) % kinds
        shape = _product(rng, kind) if op == "sgemm" else _streamed(op, rng, kind)
        if _fits(shape):
            found.append(shape)
    return found[:count]


def random_products(count: int, seed: int) -> list[Shape]:
    """As the benchmark draws them: sizes from 1 to 8192, operands as they lie or transposed."""
    drawn = problems.random("sgemm", 2 * count, seed)
    found = [Shape("sgemm", p.m, p.n, p.k, trans_a=p.trans_a, trans_b=p.trans_b) for p in drawn]
    return [shape for shape in found if _fits(shape)][:count]


# ---------------------------------------------------------------- which kernels
def estimates(shape: Shape) -> dict[str, float]:
    """Of each kernel that takes the operands as they lie; those of unaligned ones are of aligned operands."""

    def ask(m: int, n: int, k: int) -> dict[str, float]:
        flags = shape.trans_a, shape.trans_b, shape.precision
        return dict(_core.rule_estimates(shape.op, m, n, k, shape.batch, *flags, "cuda"))

    found = ask(shape.m, shape.n, shape.k)
    if not shape.contiguous:
        takes_any = ask(33, 35, 37)
        found = {name: us for name, us in found.items() if name in takes_any}
    return found


def wanted(shape: Shape, number: int, rows: dict[str, Any], near: float = TOO_FAR) -> dict[str, float]:
    """What to time on the shape: the kernels and their estimates, at most `near` times the best one."""
    found = estimates(shape)
    best = min(found.values(), default=0.0)
    kept = {}
    for name, us in found.items():
        apart = us / best
        if apart > near or (apart > FAR and number % FAR_EVERY):
            continue
        if shape.op == "sgemm" and rows[name].traits.ladder and number % LADDER_EVERY:
            continue
        if shape.precision == "accurate" and rows[name].strict and apart > CLOSE:
            continue
        kept[name] = us
    return kept


# ---------------------------------------------------------------- timing
class Memory:
    """Three buffers that every shape uses, filled with normal numbers."""

    def __init__(self, all_shapes: list[Shape]) -> None:
        most = [max(shape.floats()[i] for shape in all_shapes) + 64 for i in range(3)]
        block = np.random.default_rng(SEED).standard_normal(min(2**22, max(most)), dtype=np.float32)
        self._buffers = [_core.DeviceBuffer(4 * floats) for floats in most]
        for buffer, floats in zip(self._buffers, most, strict=True):
            for start in range(0, floats, block.size):
                buffer.upload(block[: floats - start], offset=4 * start)

    def operands(self, shape: Shape) -> list[DeviceOperand]:
        batch = (shape.batch,) if shape.batch > 1 else ()
        sizes = [stored[1:] if shape.op == "sgemv" and i else stored for i, stored in enumerate(shape.stored())]
        each = zip(self._buffers, shape.offset, shape.leading(), sizes, strict=True)
        return [DeviceOperand(buffer, offset, ld, (*batch, *size)) for buffer, offset, ld, size in each]


def call(shape: Shape, kernel: str | None, memory: Memory):
    a, b, c = memory.operands(shape)
    if shape.op == "sgemm":
        options = {"trans_a": shape.trans_a, "trans_b": shape.trans_b, "precision": shape.precision, "out": c}
        return lambda stream: fl.sgemm(a, b, **options, kernel=kernel, stream=stream)
    if shape.op == "sgemv":
        return lambda stream: fl.sgemv(a, b, trans=shape.trans_a, out=c, kernel=kernel, stream=stream)
    return lambda stream: fl.transpose(a, c, kernel=kernel, stream=stream)


def time_us(work: Any, estimate_us: float) -> float:
    launches = max(1, min(MOST_LAUNCHES, int(BLOCK_US / estimate_us)))
    return statistics.median(_core.time_in_graph(work, launches, REPLAYS))


def beside(shape: Shape, against: list[Any], memory: Memory) -> dict[str, float]:
    """What dispatch takes in either precision, and the libraries."""
    works = {name: call(replace(shape, precision=name), None, memory) for name in ("accurate", "strict")}
    problem = problems.Problem("sgemm", shape.m, shape.n, shape.k, trans_a=shape.trans_a, trans_b=shape.trans_b)
    for peer in against:
        works |= peer.device_calls(problem, *memory.operands(shape))
    estimate_us = 3 + 2 * shape.m * shape.n * shape.k / 4e7
    return {name: round(time_us(work, estimate_us), 3) for name, work in works.items()}


def slowest(measured: list[dict], peer: str) -> str:
    """Ratios to a library: their mean, and the shapes with the least."""
    lines = []
    for ours in ("accurate", "strict"):
        ratios = {f"{r['m']}x{r['n']}x{r['k']}:{'NT'[r['trans_a']]}{'NT'[r['trans_b']]}": r["us"][peer] / r["us"][ours]
                  for r in measured}  # fmt: skip
        worst = ", ".join(f"{name} {ratios[name]:.2f}" for name in sorted(ratios, key=ratios.__getitem__)[:12])
        lines.append(f"{ours} / {peer}: geometric mean {statistics.geometric_mean(ratios.values()):.3f}; {worst}")
    return "\n".join(lines)


def todo(args: argparse.Namespace) -> Iterator[tuple[int, Shape]]:
    """All shapes, the operations by turns, so that a run that ends early has some of each."""
    ops, count, seed = args.ops, args.shapes, args.seed
    if args.random or args.against:
        yield from enumerate(random_products(count, seed))
        return
    lists = [shapes(op, count, seed) for op in ops]
    for number in range(max(map(len, lists))):
        for each in lists:
            if number < len(each):
                yield number, each[number]
                if each[number].op == "sgemm":
                    yield number, Shape(**(asdict(each[number]) | {"precision": "accurate"}))


@functools.cache
def rows_of(op: str) -> dict[str, Any]:
    return {row.name: row for row in fl.kernels(op)}


def times_of(
    args: argparse.Namespace, shape: Shape, number: int, memory: Memory, against: list[Any]
) -> dict[str, float]:
    if against:
        return beside(shape, against, memory)
    times = {}
    for kernel, estimate in wanted(shape, number, rows_of(shape.op), args.near).items():
        try:
            times[kernel] = round(time_us(call(shape, kernel, memory), estimate), 3)
        except ValueError:  # the estimates were of aligned operands
            continue
    return times


def measure(args: argparse.Namespace) -> None:
    calls = list(todo(args))
    memory, against = Memory([shape for _, shape in calls]), peers.load(args.against, "cuda", None)
    begin, measured = time.monotonic(), []
    for done, (number, shape) in enumerate(calls):
        if time.monotonic() - begin > args.seconds:
            print(f"\n{args.seconds:g} s are over after {done} of {len(calls)} calls", file=sys.stderr)
            break
        measured.append(asdict(shape) | {"us": times_of(args, shape, number, memory, against)})
        if done % SAVED_EVERY == 0:
            write(args.out, measured)
        if sys.stderr.isatty():
            print(f"\r{done + 1} of {len(calls)}", end="", file=sys.stderr, flush=True)
    write(args.out, measured)
    print(f"\n{sum(len(m['us']) for m in measured)} times in {time.monotonic() - begin:.0f} s", file=sys.stderr)
    for peer in against:
        print(slowest(measured, peer.name))


def write(path: Path, measured: list[dict]) -> None:
    device = fl.devices()[0]
    head = machine.head(["python", *sys.argv], machine.describe("cuda", device["peak_gflops"], 0))
    path.parent.mkdir(parents=True, exist_ok=True)
    records.write(path, head | {"device": device, "measured": measured})


def main() -> int | str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--ops", nargs="+", choices=OPS, default=list(OPS))
    parser.add_argument("--shapes", type=int, default=200, help="of each operation (default: 200)")
    parser.add_argument("--seconds", type=float, default=240.0, help="end after so long (default: 240)")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the random shapes (default: {SEED})")
    parser.add_argument("--random", action="store_true", help="strict products as the benchmark's random ones")
    parser.add_argument("--against", nargs="+", default=[], help="libraries beside dispatch, on random shapes")
    parser.add_argument("--near", type=float, default=TOO_FAR, help="kernels whose estimate is so many times the best")
    args = parser.parse_args()
    if not fl.devices():
        return f"kernel_times needs a CUDA device: {fl.info()['cuda']['message']}"
    measure(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
