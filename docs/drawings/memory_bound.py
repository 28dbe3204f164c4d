"""Drawings of SGEMV and of the transposes."""

from __future__ import annotations

from matplotlib.figure import Figure

from .draw import INK, arrow, canvas, cells, drawing, frame, label, panes


@drawing
@panes(0, 37.5, 74)
def gemv_lanes() -> Figure:
    """Left, a warp reads one row of 32 floats with 32 lanes. Right, a warp reads four rows with eight lanes of
    sixteen bytes each.
    """
    figure, axes = canvas(8.4, 1.9, 74, 16.6)
    label(axes, 18, 1.2, "one row: 32 lanes, one float each")
    cells(axes, (2, 2.8), (4, 32), 1, {(0, c): INK.a if c % 2 else INK.b for c in range(32)}, 2)
    label(axes, 18, 13.2, "then 5 steps to add 32 sums")
    label(axes, 56, 1.2, "four rows: 8 lanes to a row, 4 floats each")
    filled = {(r, c): INK.a if c // 4 % 2 else INK.b for r in range(4) for c in range(32)}
    cells(axes, (40, 2.8), (4, 32), 1, filled, 2)
    label(axes, 56, 13.2, "then 3 steps to add 8 sums in each row")
    for row in range(4):
        frame(axes, INK.text, (40, 2.8 + 2 * row), 32, 2, 0.9)
    frame(axes, INK.text, (2, 2.8), 32, 2, 0.9)
    return figure


@drawing
def transpose_tile() -> Figure:
    """A warp reads a row of a tile of A into shared memory, and reads a column of the tile from there to write
    a row of B. The tile has one word of padding per row.
    """
    figure, axes = canvas(8.2, 2.5, 36, 11.0)
    label(axes, 4.5, 0.8, "A")
    cells(axes, (0.5, 1.6), (8, 8), 1, {(2, c): INK.a for c in range(8)})
    label(axes, 18, 0.8, "tile in shared memory")
    filled = {(2, c): INK.a for c in range(8)} | {(r, 5): INK.c for r in range(8)}
    filled |= {(r, 8): INK.wait for r in range(8)}
    cells(axes, (13.5, 1.6), (8, 9), 1, filled)
    label(axes, 31, 0.8, "B")
    cells(axes, (27, 1.6), (8, 8), 1, {(5, c): INK.c for c in range(8)})
    arrow(axes, INK.a, (8.8, 4.1), (13.2, 4.1))
    arrow(axes, INK.c, (22.8, 5.6), (26.7, 7.0))
    label(axes, 4.5, 10.3, "a row is read", fontsize=8)
    label(axes, 18, 10.3, "written by rows, read by columns", fontsize=8)
    label(axes, 31, 10.3, "a row is written", fontsize=8)
    return figure
