"""Where operands are cut: alike along what they share."""

from __future__ import annotations

import math

from ._chunks import Chunks, suggest_chunks
from ._graph import FLOAT32
from ._operands import Dimension, Operand

BATCH_BYTES = 2**27  # of matrices in one chunk, where nothing else says how many


def cut_alike(a: Operand, b: Operand, sizes: Chunks | None, unit: int) -> None:
    """Cut operands that are not cut, as the other one or in these sizes, and the smaller of two Dask arrays anew.

    `unit`: of what is summed, where these sizes decide.
    """
    if a.chunks is None or b.chunks is None:
        m, n = (1 if x.free is None else x.shape[x.free] for x in (a, b))
        sizes = sizes or suggest_chunks(m, n, a.shape[a.summed])
        summed = -(-sizes.a[1] // unit) * unit
        _cut_new(a, b, free=sizes.c[0], summed=summed)
        _cut_new(b, a, free=sizes.c[1], summed=summed)
    for x_axis, y_axis in _shared(a, b):
        _agree(a, x_axis, b, y_axis)


def batch_chunks(batch: tuple[int, ...], a: Operand, b: Operand) -> tuple[Dimension, ...]:
    """The chunks of the leading dimensions of the result."""
    chunks: list[Dimension] = []
    for axis in range(-len(batch), 0):
        found = [x.sizes[axis - x.core] for x in (a, b) if len(x.leading) >= -axis]
        chunks.append(next((sizes for sizes in found if sizes != (1,)), (1,)))
    return tuple(chunks)


def free_chunks(a: Operand, b: Operand) -> tuple[Dimension, ...]:
    """Those of its rows and columns; a product of two vectors has one element, in one dimension."""
    chunks = tuple(x.sizes[x.free] for x in (a, b) if x.free is not None)
    return chunks or ((1,),)


def _shared(a: Operand, b: Operand) -> list[tuple[int, int]]:
    """Pairs of axes, counted from the end, along which both operands have the same elements."""
    leading = range(1, min(len(a.leading), len(b.leading)) + 1)
    batch = [(-a.core - axis, -b.core - axis) for axis in leading]
    return [(a.summed, b.summed), *((x, y) for x, y in batch if a.shape[x] == b.shape[y])]


def _cut_new(x: Operand, other: Operand, free: int, summed: int) -> None:
    if x.chunks is not None:
        return
    core = [summed] * x.core
    if x.free is not None:
        core[x.free] = free
    matrix = x.shape[len(x.leading) :]
    whole = all(size <= most for size, most in zip(matrix, core, strict=True))
    together = max(1, BATCH_BYTES // max(FLOAT32 * math.prod(matrix), 1)) if whole else 1
    most_sizes = [1] * (len(x.leading) - 1) + [together] * bool(x.leading) + core
    chunks = [_pieces(size, most) for size, most in zip(x.shape, most_sizes, strict=True)]
    if other.chunks is not None:
        for axis, other_axis in _shared(x, other):
            chunks[axis] = other.chunks[other_axis]
    x.cut(chunks)


def _agree(x: Operand, x_axis: int, y: Operand, y_axis: int) -> None:
    """Cut `y` along its axis as `x` along its own, or the other way round if `x` is smaller: less is moved then."""
    if x.nbytes < y.nbytes:
        x, x_axis, y, y_axis = y, y_axis, x, x_axis
    chunks = list(y.sizes)
    chunks[y_axis] = x.sizes[x_axis]
    y.cut(chunks)


def _pieces(size: int, most: int) -> Dimension:
    return tuple(min(most, size - begin) for begin in range(0, size, most)) or (0,)
