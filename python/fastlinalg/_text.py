"""Aligned plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def aligned(rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Rows of cells as lines with aligned columns.

    Parameters
    ----------
    rows : iterable of sequences of str
        All of the same length.
    right : iterable of int
        The columns to align on the right.
    """
    cells = [list(row) for row in rows]
    if not cells:
        return []
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    to_right = set(right)
    return [
        "  ".join(
            c.rjust(w) if i in to_right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
