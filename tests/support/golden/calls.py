"""Fixed random calls of each kind, as the cost models take them, and the devices that are asked about them."""

from __future__ import annotations

from ..chips import H200, chip
from ..reproducible import Draws

Range = tuple[int, int]
Call = tuple  # m, n, k, batch, trans_a, trans_b, pads and offsets of the operands and the result, precision

DEVICES = {"h200": H200, "t4": chip("Tesla T4"), "b200": chip("NVIDIA B200")}  # costs are measured, and carried over
PRECISIONS = ("strict", "accurate", "reproducible")

ITSELF = "matrix times its own transpose"
# m, n, k, batch from ... to ...
PRODUCTS: dict[str, tuple[Range, Range, Range, Range]] = {
    "tiny": ((1, 32), (1, 32), (1, 64), (1, 1)),
    "small": ((16, 512), (16, 512), (16, 1024), (1, 1)),
    "any size": ((1, 4096), (1, 4096), (1, 4096), (1, 1)),
    "large": ((1024, 16384), (1024, 16384), (1024, 16384), (1, 1)),
    "tall": ((2048, 200000), (2, 64), (16, 2048), (1, 1)),
    "wide": ((2, 64), (2048, 200000), (16, 2048), (1, 1)),
    "long sums": ((1, 512), (1, 512), (4096, 300000), (1, 1)),
    "short sums": ((512, 20000), (512, 20000), (1, 64), (1, 1)),
    "one row": ((1, 1), (1, 20000), (1, 20000), (1, 1)),
    "one column": ((1, 20000), (1, 1), (1, 20000), (1, 1)),
    "tiny, batched": ((1, 32), (1, 32), (1, 64), (2, 100000)),
    "batched": ((1, 512), (1, 512), (1, 512), (2, 500)),
    "large, batched": ((512, 3000), (512, 3000), (512, 3000), (2, 9)),
    ITSELF: ((64, 8192), (1, 1), (64, 8192), (1, 3)),  # as many columns as rows
}
MATRICES: dict[str, tuple[Range, Range, Range, Range]] = {  # of SGEMV and of transposes
    "any size": ((1, 20000), (1, 20000), (1, 1), (1, 1)),
    "small": ((1, 300), (1, 300), (1, 1), (1, 1)),
    "tall": ((1000, 2000000), (1, 64), (1, 1), (1, 1)),
    "wide": ((1, 64), (1000, 2000000), (1, 1), (1, 1)),
    "batched": ((1, 500), (1, 500), (1, 1), (2, 1000)),
}
KINDS = {"sgemm": PRODUCTS, "sgemv": MATRICES, "transpose": MATRICES}


def drawn(draws: Draws, ranges: tuple[Range, ...], op: str, precision: str | None) -> Call:
    """Half of them of whole tiles, half transposed; a quarter padded, a quarter not aligned."""
    m, n, k, batch = (draws.between(*limits) for limits in ranges)
    n = m if ranges == PRODUCTS[ITSELF] else n
    if draws.below(2):
        m, n, k = (size // 64 * 64 or size for size in (m, n, k))
    transposed = [op != "transpose" and draws.below(2) == 1 for _ in range(2)]
    pads, offsets = ([draws.below(8) * (draws.below(4) == 0) for _ in range(3)] for _ in range(2))
    return (m, n, k, batch, *transposed, pads, offsets, precision or draws.one_of(*PRECISIONS))


def calls(op: str, kind: str, count: int, precision: str | None = None) -> list[Call]:
    """The same each time; without a precision of all three."""
    draws = Draws(1 + list(KINDS[op]).index(kind))
    return [drawn(draws, KINDS[op][kind], op, precision) for _ in range(count)]
