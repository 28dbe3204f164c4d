"""Where operands are cut: alike along what they share."""

from __future__ import annotations

import math
import reprlib
from numbers import Integral
from typing import Any

from dask.array.core import normalize_chunks

from ._chunks import Chunks, suggest_chunks
from ._graph import FLOAT32
from ._operands import Dimension, Operand

BATCH_BYTES = 2**27  # of matrices in one chunk, where nothing else says how many


def cut_alike(a: Operand, b: Operand, asked: Any, unit: int) -> None:
    """Cut operands as is asked for, those that are not cut as the other one, and the smaller of two Dask arrays anew.

    `asked`: what a caller gives as ``chunks=``. `unit`: of what is summed, where it or `suggest_chunks` decides.
    """
    if asked is not None or a.chunks is None or b.chunks is None:
        rows, columns, depth = _pieces_of_result(a, b, asked)
        summed = _pieces(a.shape[a.summed], -(-depth // unit) * unit)
        for x, free in ((a, rows), (b, columns)):
            if asked is not None and x.chunks is not None:
                x.cut((*x.chunks[: len(x.leading)], *_core(x, free, summed)))
        _cut_new(a, b, rows, summed)
        _cut_new(b, a, columns, summed)
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


def _pieces_of_result(a: Operand, b: Operand, asked: Any) -> tuple[Dimension, Dimension, int]:
    """Of its rows and columns, and how long those of the sums are. A vector has (1,) in place of one of the first."""
    sides = {axis: x.shape[x.free] for axis, x in enumerate((a, b)) if x.free is not None}
    try:
        pieces, depth = _read(asked, sides, a.shape[a.summed])
    except (TypeError, ValueError, ZeroDivisionError) as error:
        reason = "a size of 0" if isinstance(error, ZeroDivisionError) else error
        raise (TypeError if isinstance(error, TypeError) else ValueError)(
            "chunks must be an int for m, n and k, the sizes of rows and columns of the result as Dask takes them, "
            f"'auto', or what suggest_chunks gives; got {reprlib.repr(asked)}: {reason}"
        ) from None
    by_axis = dict(zip(sides, pieces, strict=True))
    return by_axis.get(0, (1,)), by_axis.get(1, (1,)), max(depth, 1)


def _read(asked: Any, sides: dict[int, int], k: int) -> tuple[tuple[Dimension, ...], int]:
    shape = tuple(sides.values())
    if isinstance(asked, Integral) and not isinstance(asked, bool):
        return normalize_chunks(asked, shape), k if asked == -1 else int(asked)
    if isinstance(asked, Chunks):
        (rows, depth), (_, columns), _ = asked
        if asked != ((rows, depth), (depth, columns), (rows, columns)):
            raise ValueError("not equal along what is equal")
        return normalize_chunks(tuple((rows, columns)[axis] for axis in sides), shape), depth
    suggested = suggest_chunks(sides.get(0, 1), sides.get(1, 1), k)
    if asked is None or (isinstance(asked, str) and asked == "auto"):
        return _read(suggested, sides, k)
    _check_kind(asked, len(sides))
    return normalize_chunks(asked, shape, dtype="float32"), suggested.a[1]


def _check_kind(asked: Any, dims: int) -> None:
    """What Dask would take without a word, and not as it is meant."""
    if not isinstance(asked, (str, tuple, list, dict)):
        raise TypeError(f"of type {type(asked).__name__}")
    if isinstance(asked, dict) and not set(asked) <= set(range(dims)):
        raise ValueError(f"of such axes there are {dims}")
    if not dims:
        raise ValueError("a product of two vectors has neither")


def _shared(a: Operand, b: Operand) -> list[tuple[int, int]]:
    """Pairs of axes, counted from the end, along which both operands have the same elements."""
    leading = range(1, min(len(a.leading), len(b.leading)) + 1)
    batch = [(-a.core - axis, -b.core - axis) for axis in leading]
    return [(a.summed, b.summed), *((x, y) for x, y in batch if a.shape[x] == b.shape[y])]


def _core(x: Operand, free: Dimension, summed: Dimension) -> list[Dimension]:
    core = [summed] * x.core
    if x.free is not None:
        core[x.free] = free
    return core


def _cut_new(x: Operand, other: Operand, free: Dimension, summed: Dimension) -> None:
    if x.chunks is not None:
        return
    core = _core(x, free, summed)
    whole = all(len(pieces) == 1 for pieces in core)
    matrix_bytes = FLOAT32 * math.prod(x.shape[len(x.leading) :])
    together = max(1, BATCH_BYTES // max(matrix_bytes, 1)) if whole else 1
    most_sizes = [1] * (len(x.leading) - 1) + [together] * bool(x.leading)
    chunks = [*map(_pieces, x.leading, most_sizes), *core]
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
