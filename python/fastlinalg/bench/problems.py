"""What is measured: the problems of each operation, the standard shapes first."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .._info import OPERATIONS
from .data import NORMAL

OWN = {"AAT": "NT", "ATA": "TN"}  # a matrix and its own transpose: what is transposed


@dataclass(frozen=True)
class Problem:
    """One operation on one shape, operands row-major.

    ``sgemm``: ``C[m,n] = op(A) @ op(B)``, `batch` times, where op transposes what is stored if `trans_a` or
    `trans_b`. ``sgemv``: ``y[m] = A[m,n] @ x[n]``, or ``y[n] = A[m,n].T @ x[m]`` if `trans`. ``transpose``:
    ``B[n,m] = A[m,n].T``. ``host``: a product of NumPy arrays, whole calls.

    Attributes
    ----------
    pads : pair of int
        How many floats lie between the rows of the first operand and of the result.
    offsets : three int
        How many floats behind an aligned address the two operands and the result begin.
    own : bool
        B is A itself, and one of them is transposed: ``A @ A.T`` by ``fl.ssyrk``. Its flops are those of the product.
    layout : str
        "C"; of host also "F", and "strided": every second row and column.
    data : str
        What the operands of a product hold (``data``).
    """

    op: str
    m: int
    n: int
    k: int = 0
    trans: bool = False
    trans_a: bool = False
    trans_b: bool = False
    batch: int = 1
    own: bool = False
    pads: tuple[int, int] = (0, 0)
    offsets: tuple[int, int, int] = (0, 0, 0)
    layout: str = "C"
    data: str = NORMAL

    @property
    def product(self) -> bool:
        """Whether it is one of two matrices."""
        return self.op in ("sgemm", "host")

    @property
    def label(self) -> str:
        text = f"{self.m}x{self.n}x{self.k}" if self.product else f"{self.m}x{self.n}"
        text += f" {self.layout}" if self.layout != "C" else ""
        text += f"*{self.batch}" if self.batch > 1 else ""
        text += f" {self.data}" if self.data != NORMAL else ""
        if self.op == "sgemv" or self.trans_a or self.trans_b:
            text += f" {('ATA' if self.trans_a else 'AAT') if self.own else self.transposition}"
        if any(self.pads):
            text += f" rows+{self.pads[0]}" + (f",{self.pads[1]}" if self.op == "transpose" else "")
        return text + (f" at {','.join(map(str, self.offsets))}" if any(self.offsets) else "")

    @property
    def transposition(self) -> str | None:
        """Which operands are transposed, in the letters of the BLAS."""
        if self.product:
            return ("T" if self.trans_a else "N") + ("T" if self.trans_b else "N")
        return ("T" if self.trans else "N") if self.op == "sgemv" else None

    @property
    def contiguous(self) -> bool:
        return not any(self.pads)

    @property
    def flops(self) -> float:
        depth = self.k if self.product else 0 if self.op == "transpose" else 1
        return 2.0 * self.m * self.n * depth * self.batch

    @property
    def bytes(self) -> float:
        """What has to cross the memory bus at least."""
        m, n, k = self.m, self.n, self.k
        words = m * k + k * n + m * n if self.product else {"sgemv": m * n + m + n, "transpose": 2 * m * n}[self.op]
        return 4.0 * words * self.batch

    @property
    def work(self) -> float:
        """What the time is about proportional to."""
        return self.flops if self.product else self.bytes

    def a_shape(self) -> tuple[int, ...]:
        """The first operand as it is stored."""
        if not self.product:
            return (self.m, self.n)
        return self._batched((self.k, self.m) if self.trans_a else (self.m, self.k))

    def b_shape(self) -> tuple[int, ...]:
        """The second operand as it is stored; empty where there is none."""
        if self.product:
            return self._batched((self.n, self.k) if self.trans_b else (self.k, self.n))
        return () if self.op == "transpose" else (self.m if self.trans else self.n,)

    def out_shape(self) -> tuple[int, ...]:
        if self.product:
            return self._batched((self.m, self.n))
        return (self.n, self.m) if self.op == "transpose" else (self.n if self.trans else self.m,)

    def _batched(self, shape: tuple[int, int]) -> tuple[int, ...]:
        return (self.batch, *shape) if self.batch > 1 else shape

    def shrunk(self, work: float) -> Problem:
        """A problem of the same kind with at most about so much work, to estimate a time from."""
        small = self
        while small.work > work and max(small.m, small.n, small.k, small.batch) > 16:
            longest = max(("batch", "m", "n", "k"), key=lambda name: getattr(small, name))
            small = replace(small, **{longest: (getattr(small, longest) + 1) // 2})
        return small


STANDARD_SIZES = (128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
QUICK_SIZES = (128, 256, 512, 1024)
STANDARD_K = 1024
STANDARD_SHAPES = {"sgemv": [(16384, 16), (16384, 32), (16384, 128)], "transpose": [(2048, 512)]}


def standard(op: str, quick: bool = False) -> list[Problem]:
    """The standard shapes, the small ones of SGEMM if `quick`; of host those of `_host`."""
    if op == "sgemm":
        return [Problem(op, size, size, STANDARD_K) for size in (QUICK_SIZES if quick else STANDARD_SIZES)]
    if op == "host":
        return _host(quick)
    return [problem for m, n in STANDARD_SHAPES[op] for problem in _orientations(op, m, n)]


def _orientations(op: str, m: int, n: int) -> list[Problem]:
    return [Problem(op, m, n, trans=trans) for trans in ((False, True) if op == "sgemv" else (False,))]


HOST_SIZES = (64, 256, 512, 1024, 2048, 4096, 8192, 16384)
QUICK_HOST_SIZES = (64, 256, 512, 1024, 2048)
HOST_SHAPES = ((4096, 4096, 1024), (16384, 16384, 1024), (131072, 256, 256), (256, 131072, 256), (512, 512, 131072))
HOST_LAYOUTS = (1024, 4096)  # cubes that are measured in every layout
QUICK_HOST_LAYOUTS = (1024,)


def _host(quick: bool) -> list[Problem]:
    """Cubes, products that are tall, wide, deep and flat, and operands in other layouts."""
    cubes = [(size, size, size) for size in (QUICK_HOST_SIZES if quick else HOST_SIZES)]
    shapes = cubes if quick else [*cubes, *HOST_SHAPES]
    others = [
        Problem("host", size, size, size, layout=layout)
        for size in (QUICK_HOST_LAYOUTS if quick else HOST_LAYOUTS)
        for layout in ("F", "strided")
    ]
    return [Problem("host", m, n, k) for m, n, k in shapes] + others


WANTED = {
    "sgemm": "M or MxNxK, with *BATCH and :NN, :NT, :TN or :TT behind it, or :AAT or :ATA behind squares,",
    "host": "M or MxNxK, with :F or :strided behind it,",
}


def parse(op: str, text: str) -> list[Problem]:
    """Problems from ``1024,4096x4096x512``: MxNxK of products, or M for M=N, with K=1024 for sgemm and M for host; for
    the others MxN.

    A product of sgemm may go on with ``*BATCH`` and ``:TN``, the transposition of what is stored: ``64x64x64*4096:NT``;
    or with ``:AAT`` or ``:ATA``, a matrix and its own transpose. One of host with ``:F`` or ``:strided``.

    Raises
    ------
    ValueError
        Text that is not such a list.
    """
    return [problem for item in text.split(",") for problem in _parse_one(op, item)]


def _parse_one(op: str, item: str) -> list[Problem]:
    shape, _, behind = item.partition(":") if op in WANTED else (item, "", "")
    shape, _, batch = shape.partition("*") if op == "sgemm" else (shape, "", "")
    try:
        sizes = [int(part) for part in shape.lower().split("x")]
        count = int(batch or 1)
    except ValueError:
        sizes, count = [], 0
    if op in WANTED and len(sizes) == 1:
        sizes = [sizes[0], sizes[0], STANDARD_K if op == "sgemm" else sizes[0]]
    own = behind.upper() in OWN and len(sizes) == 3 and sizes[0] == sizes[1]
    transposition = OWN[behind.upper()] if own else (behind or "NN").upper()
    known = behind in ("", "C", "F", "strided") if op == "host" else transposition in ("NN", "NT", "TN", "TT")
    if not known or len(sizes) != (3 if op in WANTED else 2) or min([*sizes, count]) < 1:
        wanted = WANTED.get(op, "MxN,")
        raise ValueError(f"--shapes for {op} takes {wanted} sizes of at least 1, separated by commas; got {item!r}")
    m, n, *k = sizes
    if op == "host":
        return [Problem(op, m, n, k[0], layout=behind or "C")]
    if op != "sgemm":
        return _orientations(op, m, n)
    trans_a, trans_b = (letter == "T" for letter in transposition)
    return [Problem(op, m, n, k[0], trans_a=trans_a, trans_b=trans_b, batch=count, own=own)]


LARGEST = {"sgemm": 8192, "sgemv": 131072, "transpose": 131072}
QUICK_LARGEST = {"sgemm": 512, "sgemv": 4096, "transpose": 4096}
MOST_ELEMENTS = 2**28  # of a matrix that is streamed: 1 GiB


def random(op: str, count: int, seed: int, quick: bool = False) -> list[Problem]:
    """Problems with sizes drawn log-uniformly from 1 to `LARGEST`, of every awkwardness.

    Products get random transpositions. The others, which memory binds, get rows that are apart, in every second
    problem, and operands that begin off an aligned address, in two of three.
    """
    rng = np.random.default_rng([seed, OPERATIONS.index(op)])
    return [_draw(op, rng, (QUICK_LARGEST if quick else LARGEST)[op]) for _ in range(count)]


def _draw(op: str, rng: np.random.Generator, largest: int) -> Problem:
    sizes = [_log_uniform(rng, largest) for _ in range(3)]
    first, second = (bool(flag) for flag in rng.integers(0, 2, 2))
    if op == "sgemm":
        return Problem(op, sizes[0], sizes[1], sizes[2], trans_a=first, trans_b=second)
    while sizes[0] * sizes[1] > MOST_ELEMENTS:
        sizes = [_log_uniform(rng, largest) for _ in range(2)]
    pads = [_log_uniform(rng, 64) if second else 0 for _ in range(2)]
    offsets = rng.integers(0, 4, 3) * (rng.random() < 2 / 3)
    return Problem(
        op,
        sizes[0],
        sizes[1],
        trans=first and op == "sgemv",
        pads=(pads[0], pads[1] if op == "transpose" else 0),
        offsets=(int(offsets[0]), int(offsets[1]) if op == "sgemv" else 0, int(offsets[2])),
    )


def _log_uniform(rng: np.random.Generator, largest: int) -> int:
    return int(math.exp(rng.uniform(0.0, math.log(largest + 1.0))))
