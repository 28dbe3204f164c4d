"""Arrays in every memory layout, inside a parent buffer that shows any access outside them.

An input lies in a parent full of NaN: an element read from beside it poisons the result. A result lies in a parent full
of a canary pattern, which ``Guarded.assert_intact`` compares byte by byte, between the rows too.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

CANARY = np.uint8(0xC7)
NAN_BYTE = np.uint8(0xFF)  # 0xFFFFFFFF is a NaN, at any alignment
MARGIN = 256  # bytes in front of and behind the array

# name -> (row stride, column stride) in bytes of an r x c matrix
MATRIX_LAYOUTS = {
    "C": lambda r, c: (4 * c, 4),
    "F": lambda r, c: (4, 4 * r),
    "padded_rows": lambda r, c: (4 * (c + 5), 4),
    "padded_columns": lambda r, c: (4, 4 * (r + 3)),
    "shifted": lambda r, c: (4 * c, 4),  # aligned to 4 bytes, not to 8 or 16
    "strided_columns": lambda r, c: (4 * (2 * c + 1), 8),
    "strided_rows": lambda r, c: (8, 4 * (2 * r + 1)),
    "strided_both": lambda r, c: (4 * (3 * c + 2), 12),
    "reversed_rows": lambda r, c: (-4 * c, 4),
    "reversed_columns": lambda r, c: (4 * c, -4),
    "reversed_both": lambda r, c: (-4, -4 * r),
    "unaligned": lambda r, c: (4 * c, 4),  # by one byte
    "unaligned_rows": lambda r, c: (4 * c + 3, 4),
    "size_one": lambda r, c: (2**40 if r == 1 else 4 * c, -(2**40) if c == 1 else 4),
}
BROADCAST_LAYOUTS = {
    "broadcast_rows": lambda r, c: (0, 4),
    "broadcast_columns": lambda r, c: (4, 0),
    "broadcast_both": lambda r, c: (0, 0),
}
VECTOR_LAYOUTS = {
    "contiguous": lambda n: 4,
    "shifted": lambda n: 4,
    "strided": lambda n: 12,
    "reversed": lambda n: -4,
    "reversed_strided": lambda n: -8,
    "unaligned": lambda n: 4,
    "unaligned_strided": lambda n: 7,
    "size_one": lambda n: 2**40 if n == 1 else 4,
}
BROADCAST_VECTOR_LAYOUTS = {"broadcast": lambda n: 0}
SHIFT = {"shifted": 4, "unaligned": 1, "unaligned_rows": 2, "unaligned_strided": 3}


def contiguous_like_blas(layout: str) -> bool:
    """Whether every kernel has to take this layout: C or F order, with or without padding."""
    return layout in ("C", "F", "padded_rows", "padded_columns", "shifted", "size_one", "contiguous")


class Guarded:
    """An array of the given shape and byte strides with a guarded parent."""

    def __init__(self, shape, strides, shift=0, fill=CANARY):
        self.shape, self.strides = tuple(shape), tuple(strides)
        reach = [(n - 1) * s if n > 1 else 0 for n, s in zip(self.shape, self.strides, strict=True)]
        empty = 0 in self.shape
        low = 0 if empty else -sum(min(r, 0) for r in reach)
        high = 0 if empty else sum(max(r, 0) for r in reach) + 4
        storage = np.full(low + high + 2 * MARGIN + shift + 64, fill, np.uint8)
        start = -storage.ctypes.data % 64  # the alignment a layout asks for does not depend on the allocator
        self.parent = storage[start : start + low + high + 2 * MARGIN + shift]
        self.fill = fill
        self.origin = MARGIN + low + shift
        # Strides of dimensions of size 1 may reach outside the parent: NumPy allows that in as_strided only.
        tame = tuple(0 if n <= 1 else s for n, s in zip(self.shape, self.strides, strict=True))
        view = np.ndarray(self.shape, np.float32, self.parent.data, self.origin, tame)
        self.array = as_strided(view, self.shape, self.strides)

    def outside(self) -> np.ndarray:
        """The mask of the parent's bytes that belong to no element."""
        mask = np.ones(self.parent.size, bool)
        if 0 not in self.shape:
            tame = tuple(0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True))
            as_strided(mask[self.origin :], (*self.shape, 4), (*tame, 1))[...] = False
        return mask

    def assert_intact(self, context="") -> None:
        changed = np.flatnonzero(self.outside() & (self.parent != self.fill))
        assert changed.size == 0, (
            f"{context}: {changed.size} bytes outside the array were written, "
            f"the first {int(changed[0]) - self.origin:+d} from its origin"
        )


def strides_of(shape, layout: str) -> tuple[int, ...]:
    """Byte strides of a stack of matrices (or of vectors, for a 1-D shape), the leading dimensions outermost."""
    if len(shape) == 1:
        return ({**VECTOR_LAYOUTS, **BROADCAST_VECTOR_LAYOUTS}[layout](shape[0]),)
    r, c = shape[-2:]
    inner = {**MATRIX_LAYOUTS, **BROADCAST_LAYOUTS}[layout](r, c)
    extent = sum(abs(s) * (n - 1) for n, s in zip((r, c), inner, strict=True) if n > 1) + 4
    step = (extent + 3) // 4 * 4 + 8
    outer = []
    for n in reversed(shape[:-2]):
        outer.append(step)
        step *= max(n, 1)
    return (*reversed(outer), *inner)


def place(values, layout: str, fill=NAN_BYTE) -> Guarded:
    """A guarded copy of ``values`` in a layout. In a broadcast layout the caller reads back what was kept."""
    guarded = Guarded(values.shape, strides_of(values.shape, layout), SHIFT.get(layout, 0), fill)
    if values.size:
        guarded.array[...] = values
    return guarded


def matrix_input(values, layout: str) -> np.ndarray:
    """``values`` in a layout, inside a parent full of NaN."""
    return place(np.asarray(values, np.float32), layout).array


def result(shape, layout: str, values=np.nan) -> Guarded:
    """An array to write to, full of NaN unless ``values`` are given, inside a parent full of canaries."""
    guarded = Guarded(shape, strides_of(shape, layout), SHIFT.get(layout, 0))
    guarded.array[...] = values
    return guarded
