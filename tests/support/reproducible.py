"""The 400 random calls of ``precision="reproducible"`` whose bits are kept in ``golden/reproducible.json``.

Shapes, layouts and numbers come from raw bits of PCG64, so that they are the same with every version of NumPy.

python -m support.reproducible               check the file on this CPU, and all of it against the program in the docs
python -m support.reproducible cuda [name]   check it on a GPU: on device arrays and from host memory; by one kernel
python -m support.reproducible write         write it anew, which only a wrong specification is a reason for
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import fastlinalg as fl
from support.source_tree import ROOT, TESTS

FILE = TESTS / "golden" / "reproducible.json"
CALLS = 400
F32 = np.float32


class Draws:
    def __init__(self, seed: int) -> None:
        self.raw = np.random.PCG64(seed).random_raw

    def below(self, n: int) -> int:
        return int(self.raw()) % n

    def between(self, least: int, most: int) -> int:
        """Small numbers as often as large ones: uniform in the number of binary digits, then among those."""
        low, high = (max(x, 1).bit_length() for x in (least, most))
        digits = low + self.below(high - low + 1)
        return min(max(least, (1 << (digits - 1)) + self.below(1 << (digits - 1))), most)

    def one_of(self, *choices: Any) -> Any:
        return choices[self.below(len(choices))]


# ---------------------------------------------------------------- numbers
def numbers(draws: Draws, kind: str, *shape: int) -> np.ndarray:
    raw = np.atleast_1d(draws.raw(int(np.prod(shape))))
    least, most = {"wide": (60, 190), "tiny": (0, 20), "huge": (170, 215)}.get(kind, (121, 129))
    exponent = np.uint32(least) + (raw >> np.uint64(40)).astype(np.uint32) % np.uint32(most - least + 1)
    x = (raw.astype(np.uint32) & np.uint32(0x807FFFFF) | exponent << np.uint32(23)).view(F32)
    if kind not in ("zeros", "integers", "special"):
        return x.reshape(shape)
    choice = (raw >> np.uint64(52)).astype(int)  # of 4096
    if kind == "zeros":
        x = np.where(choice < 2048, np.copysign(F32(0), x), x)
    if kind == "integers":
        x = (choice % 256 - 128).astype(F32)
    if kind == "special":
        for one, value in enumerate((np.inf, -np.inf, np.nan)):
            x = np.where(choice == one, F32(value), x)
    return x.reshape(shape)


KINDS = ("plain", "plain", "plain", "wide", "tiny", "huge", "zeros", "integers", "special")


# ---------------------------------------------------------------- layouts
def laid_out(draws: Draws, x: np.ndarray) -> np.ndarray:
    """The same matrices with other strides: in other memory, parts of a larger array."""
    layout = draws.one_of("C", "C", "F", "slice", "column slice", "every other", "reversed")
    batch, (rows, cols) = x.shape[:-2], x.shape[-2:]
    if layout == "C":
        return x
    if layout == "F":
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == "reversed":
        return np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1]
    if layout == "every other":
        room = np.full((*batch, rows, 2 * cols), np.nan, F32)
        part = room[..., ::2]
    elif layout == "slice":
        room = np.full((*batch, rows + 3, cols + 5), np.nan, F32)
        part = room[..., 1 : rows + 1, 2 : cols + 2]
    else:
        room = np.full((*batch, cols + 2, rows + 4), np.nan, F32)
        part = room[..., 1 : cols + 1, 4:].swapaxes(-1, -2)
    part[...] = x
    return part


# ---------------------------------------------------------------- calls
@dataclass
class Call:
    number: int
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None
    alpha: float
    beta: float
    trans: tuple[bool, bool]

    def run(self, put=np.asarray, **options: Any) -> Any:
        a, b, c = (None if x is None else put(x) for x in (self.a, self.b, self.c))
        return fl.sgemm(
            a, b, c, alpha=self.alpha, beta=self.beta, trans_a=self.trans[0], trans_b=self.trans[1],
            precision="reproducible", **options,
        )  # fmt: skip

    @property
    def work(self) -> int:
        batch = max(int(np.prod(x.shape[:-2])) for x in (self.a, self.b))
        m, n = self.a.shape[-1 if self.trans[0] else -2], self.b.shape[-2 if self.trans[1] else -1]
        return batch * m * n * (self.a.size // max(m * int(np.prod(self.a.shape[:-2])), 1))

    def expected(self, product) -> np.ndarray:
        """By a function of two matrices, the order's own."""
        a, b = (x.swapaxes(-1, -2) if t else x for x, t in zip((self.a, self.b), self.trans, strict=True))
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (np.broadcast_to(x, batch + x.shape[-2:]) for x in (a, b))
        result = np.empty((*batch, a.shape[-2], b.shape[-1]), F32)
        c = None if self.c is None else np.broadcast_to(self.c, result.shape)
        for at in np.ndindex(*batch):
            result[at] = product(a[at], b[at], self.alpha, self.beta, None if c is None else c[at])
        return result


def shape(draws: Draws) -> tuple[int, int, int]:
    kind = draws.below(20)
    if kind < 4:
        return draws.between(1, 16), draws.between(1, 16), draws.between(0, 40)
    if kind < 9:
        return draws.between(1, 150), draws.between(1, 150), draws.between(1, 1300)
    if kind < 12:
        return draws.between(1, 40), draws.between(1, 40), draws.between(1000, 12000)
    if kind < 15:
        m, n, k = draws.between(1, 600), draws.between(1, 4), draws.between(1, 1500)
        return (m, n, k) if draws.below(2) else (n, m, k)
    if kind < 18:
        k = draws.one_of(1, 255, 256, 257, 511, 512, 513, 768, 1024, 1025)
        return draws.between(8, 260), draws.between(8, 260), k
    if kind == 18 or draws.below(3):
        return draws.between(200, 520), draws.between(200, 520), draws.between(200, 900)
    return draws.between(600, 1100), draws.between(600, 1100), draws.between(200, 900)


@functools.cache  # 160 MB, of which each row's test has a use
def call(number: int) -> Call:
    draws = Draws(1000 + number)
    m, n, k = shape(draws)
    batches = [(), ()]
    if m * n * k < 2e6 and draws.below(3) == 0:
        batches = draws.one_of([(3,), (3,)], [(3,), ()], [(), (4,)], [(2, 1), (3,)], [(5,), (1,)])
    trans = bool(draws.below(3) == 0), bool(draws.below(3) == 0)
    kinds = draws.one_of(*KINDS), draws.one_of(*KINDS)
    a = numbers(draws, kinds[0], *batches[0], *((k, m) if trans[0] else (m, k)))
    b = numbers(draws, kinds[1], *batches[1], *((n, k) if trans[1] else (k, n)))
    alpha = draws.one_of(1.0, 1.0, 1.0, -1.0, 0.3, -2.5e-3, 1e30, 0.0)
    beta = draws.one_of(0.0, 0.0, 0.0, 1.0, 1.0, -0.7, 1e-20)
    batch = np.broadcast_shapes(*batches)
    c_shape = draws.one_of((*batch, m, n), (m, n), (m, 1))
    c = laid_out(draws, numbers(draws, draws.one_of(*KINDS), *c_shape)) if beta else None
    return Call(number, laid_out(draws, a), laid_out(draws, b), c, alpha, beta, trans)


def calls() -> Iterator[Call]:
    return (call(number) for number in range(CALLS))


# ---------------------------------------------------------------- bits
def digest(result: Any) -> str:
    """Of the bits in C order; NaN has one pattern for all of its payloads."""
    values = np.ascontiguousarray(result if isinstance(result, np.ndarray) else result.numpy())
    bits = np.where(np.isnan(values), np.uint32(0x7FC00000), values.view(np.uint32))
    return hashlib.sha256(bits.astype("<u4").tobytes()).hexdigest()[:16]


def recorded() -> list[str]:
    return json.loads(FILE.read_text())


def differing(run, most: float = np.inf) -> list[int]:
    """The numbers of the calls of at most so much work for which ``run(call)`` has other bits than the file."""
    both = zip(calls(), recorded(), strict=True)
    return [at.number for at, want in both if at.work <= most and digest(run(at)) != want]


@functools.cache
def program(fused: bool = True) -> Any:
    """``fma`` and ``reproducible`` of docs/reproducible.md; or without FMAs, the same chains of a CPU that has none."""
    page = (ROOT / "docs" / "reproducible.md").read_text()
    found: dict[str, Any] = {}
    exec(re.search(r"```python\n(.+?)```", page, re.DOTALL)[1], found)
    if not fused:
        found["fma"] = lambda x, y, z: F32(x) * F32(y) + F32(z)
    return found["fma"], found["reproducible"]


def main(what: str = "cpu", kernel: str | None = None) -> None:
    if what == "write":
        bits = [digest(at.run(device="cpu")) for at in calls()]
        lines = (json.dumps(bits[first : first + 10])[1:-1] for first in range(0, CALLS, 10))
        FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    elif what == "cuda":
        on_device = differing(lambda at: at.run(fl.DeviceArray.from_numpy, kernel=kernel))
        from_host = differing(lambda at: at.run(device="cuda", kernel=kernel))
        print(f"calls with other bits: {on_device} on device arrays, {from_host} from host memory")
    else:
        _, product = program()
        with np.errstate(all="ignore"):
            of_docs = differing(lambda at: at.expected(product))
        print(f"calls with other bits: {of_docs} by the docs, {differing(lambda at: at.run(device='cpu'))} on the CPU")


if __name__ == "__main__":
    main(*sys.argv[1:])
