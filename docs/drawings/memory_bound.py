"""Drawings of SGEMV and of the transposes."""

from __future__ import annotations

from matplotlib.figure import Figure

from .draw import Palette, arrow, canvas, cells, drawing, frame, label, panes


@drawing
@panes(0, 37.5, 74)
def gemv_lanes(palette: Palette) -> Figure:
    """Left, a warp reads one row of 32 floats with 32 lanes. Right, a warp reads four rows with eight lanes of
    sixteen bytes each.
    """
    figure, axes = canvas(palette, 8.4, 1.9, 74, 16.6)
    label(axes, palette, 18, 1.2, "one row: 32 lanes, one float each")
    cells(axes, palette, (2, 2.8), (4, 32), 1, {(0, c): palette.a if c % 2 else palette.b for c in range(32)}, 2)
    label(axes, palette, 18, 13.2, "then 5 steps to add 32 sums")
    label(axes, palette, 56, 1.2, "four rows: 8 lanes to a row, 4 floats each")
    filled = {(r, c): palette.a if c // 4 % 2 else palette.b for r in range(4) for c in range(32)}
    cells(axes, palette, (40, 2.8), (4, 32), 1, filled, 2)
    label(axes, palette, 56, 13.2, "then 3 steps to add 8 sums in each row")
    for row in range(4):
        frame(axes, palette.text, (40, 2.8 + 2 * row), 32, 2, 0.9)
    frame(axes, palette.text, (2, 2.8), 32, 2, 0.9)
    return figure


@drawing
def transpose_tile(palette: Palette) -> Figure:
    """A warp reads a row of a tile of A into shared memory, and reads a column of the tile from there to write
    a row of B. The tile has one word of padding per row.
    """
    figure, axes = canvas(palette, 8.2, 2.5, 36, 11.0)
    label(axes, palette, 4.5, 0.8, "A")
    cells(axes, palette, (0.5, 1.6), (8, 8), 1, {(2, c): palette.a for c in range(8)})
    label(axes, palette, 18, 0.8, "tile in shared memory")
    filled = {(2, c): palette.a for c in range(8)} | {(r, 5): palette.c for r in range(8)}
    filled |= {(r, 8): palette.wait for r in range(8)}
    cells(axes, palette, (13.5, 1.6), (8, 9), 1, filled)
    label(axes, palette, 31, 0.8, "B")
    cells(axes, palette, (27, 1.6), (8, 8), 1, {(5, c): palette.c for c in range(8)})
    arrow(axes, palette.a, (8.8, 4.1), (13.2, 4.1))
    arrow(axes, palette.c, (22.8, 5.6), (26.7, 7.0))
    label(axes, palette, 4.5, 10.3, "a row is read", fontsize=8)
    label(axes, palette, 18, 10.3, "written by rows, read by columns", fontsize=8)
    label(axes, palette, 31, 10.3, "a row is written", fontsize=8)
    return figure
