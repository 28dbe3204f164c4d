"""What is measured: the problems of each operation, the founding documents' shapes first."""

from __future__ import annotations

from dataclasses import dataclass, replace

OPS = ("sgemm", "sgemv", "transpose")


@dataclass(frozen=True)
class Problem:
    """One operation on one shape, row-major, contiguous.

    ``sgemm``: ``C[m,n] = A[m,k] @ B[k,n]``. ``sgemv``: ``y[m] = A[m,n] @ x[n]``, or ``y[n] = A[m,n].T @
    x[m]`` if `trans`. ``transpose``: ``B[n,m] = A[m,n].T``.
    """

    op: str
    m: int
    n: int
    k: int = 0
    trans: bool = False

    @property
    def label(self) -> str:
        text = f"{self.m}x{self.n}x{self.k}" if self.op == "sgemm" else f"{self.m}x{self.n}"
        return f"{text} {'T' if self.trans else 'N'}" if self.op == "sgemv" else text

    @property
    def flops(self) -> float:
        return {"sgemm": 2.0 * self.m * self.n * self.k, "sgemv": 2.0 * self.m * self.n, "transpose": 0.0}[self.op]

    @property
    def bytes(self) -> float:
        """What has to cross the memory bus at least."""
        m, n, k = self.m, self.n, self.k
        words = {"sgemm": m * k + k * n + m * n, "sgemv": m * n + m + n, "transpose": 2 * m * n}[self.op]
        return 4.0 * words

    @property
    def work(self) -> float:
        """What the time is about proportional to."""
        return self.flops if self.op == "sgemm" else self.bytes

    def a_shape(self) -> tuple[int, int]:
        return (self.m, self.k) if self.op == "sgemm" else (self.m, self.n)

    def b_shape(self) -> tuple[int, ...]:
        """The second operand; empty where there is none."""
        if self.op == "sgemm":
            return (self.k, self.n)
        return () if self.op == "transpose" else (self.m if self.trans else self.n,)

    def out_shape(self) -> tuple[int, ...]:
        if self.op == "sgemm":
            return (self.m, self.n)
        return (self.n, self.m) if self.op == "transpose" else (self.n if self.trans else self.m,)

    def shrunk(self, work: float) -> Problem:
        """A problem of the same kind with at most about so much work, to estimate a time from."""
        small = self
        while small.work > work and max(small.m, small.n, small.k) > 16:
            if small.m >= max(small.n, small.k):
                small = replace(small, m=(small.m + 1) // 2)
            elif small.n >= small.k:
                small = replace(small, n=(small.n + 1) // 2)
            else:
                small = replace(small, k=(small.k + 1) // 2)
        return small


FOUNDING_SIZES = (128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
QUICK_SIZES = (128, 256, 512, 1024)
FOUNDING_K = 1024
FOUNDING_SHAPES = {"sgemv": [(16384, 16), (16384, 32), (16384, 128)], "transpose": [(2048, 512)]}


def founding(op: str, quick: bool = False) -> list[Problem]:
    """The shapes of the founding documents; the small ones of SGEMM if `quick`."""
    if op == "sgemm":
        return [Problem(op, size, size, FOUNDING_K) for size in (QUICK_SIZES if quick else FOUNDING_SIZES)]
    return [problem for m, n in FOUNDING_SHAPES[op] for problem in _orientations(op, m, n)]


def _orientations(op: str, m: int, n: int) -> list[Problem]:
    return [Problem(op, m, n, trans=trans) for trans in ((False, True) if op == "sgemv" else (False,))]


def parse(op: str, text: str) -> list[Problem]:
    """Problems from ``1024,4096x4096x512``: for sgemm M=N (with K=1024) or MxNxK, for the others MxN.

    Raises
    ------
    ValueError
        Text that is not such a list.
    """
    wanted = "M or MxNxK" if op == "sgemm" else "MxN"
    problems = []
    for item in text.split(","):
        try:
            sizes = [int(part) for part in item.lower().split("x")]
        except ValueError:
            sizes = []
        if op == "sgemm" and len(sizes) == 1:
            sizes = [sizes[0], sizes[0], FOUNDING_K]
        if len(sizes) != (3 if op == "sgemm" else 2) or min(sizes) < 1:
            raise ValueError(
                f"--shapes for {op} takes {wanted}, sizes of at least 1, separated by commas; got {item!r}"
            )
        m, n, *k = sizes
        problems += [Problem(op, m, n, k[0])] if op == "sgemm" else _orientations(op, m, n)
    return problems
