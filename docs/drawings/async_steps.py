"""Drawings of the steps from asynchronous copies on."""

from __future__ import annotations

from matplotlib.figure import Figure

from .draw import INK, arrow, bars, block, box, canvas, cells, drawing, frame, label, panes


@drawing
def async_copies() -> Figure:
    """A time line of four stages in shared memory. While step 0 is multiplied from the first stage, the copies of steps
    1, 2 and 3 into the others are under way; each step that has been multiplied frees a stage for the step four later.
    """
    figure, axes = canvas(8.0, 2.6, 36, 11.8)
    for stage in range(4):
        y = 0.6 + stage * 2.3
        label(axes, 4.4, y + 0.8, f"stage {stage}", ha="right")
        parts = [(5 + stage, 10.5 + stage * 4, INK.copy, f"copy {stage}")]
        start = 10.5 + stage * 4
        parts.append((start, start + 4, INK.c, f"multiply {stage}"))
        if start + 4 < 34:
            parts.append((start + 4, 35, INK.copy, f"copy {stage + 4}"))
        bars(axes, y, parts, 1.6)
    label(axes, 20, 10.8, "time runs to the right; copies take no thread's time", fontsize=8.5)
    return figure


@drawing
@panes(0, 18, 36)
def warp_tiles() -> Figure:
    """Left, the tile of a block, 128 x 256, in two rows of four warp tiles of 64 x 64. Right, one warp tile: 32 lanes,
    8 down and 4 across, each with 8 x 16 elements in pieces of 4 x 4; one lane's eight pieces are marked.
    """
    figure, axes = canvas(8.2, 3.0, 36, 13.2)
    label(axes, 8.8, 0.7, "block: 128 × 256")
    for warp in range(8):
        x, y = 0.8 + warp % 4 * 4, 1.5 + warp // 4 * 4
        block(axes, INK.c, (x, y), 4, 4, 0.8 if warp == 5 else 0.35)
        frame(axes, INK.line, (x, y), 4, 4, 1.0)
        label(axes, x + 2, y + 2, f"warp {warp}", fontsize=8)
    label(axes, 8.8, 10.8, "a warp: 64 × 64, in one piece", fontsize=8.5)
    label(axes, 27, 0.7, "warp 5, in pieces of 4 × 4")
    filled = {(row, col): INK.c for row in (1, 9) for col in (2, 6, 10, 14)}
    cells(axes, (22, 1.5), (16, 16), 0.62, filled)
    label(axes, 27, 12.4, "one of 32 lanes: 8 × 16 elements", fontsize=8.5)
    return figure


@drawing
@panes(0, 18, 36)
def tma() -> Figure:
    """Left, 256 threads with an address each copy a tile of B in rows of 16 bytes. Right, one thread asks the tensor
    memory accelerator for a box.
    """
    figure, axes = canvas(8.2, 2.9, 36, 12.6)
    label(axes, 8.8, 0.7, "cp.async: 1024 copies of 16 bytes")
    cells(axes, (1, 1.6), (8, 16), 0.95, {(r, c): INK.b for r in range(8) for c in range(16)}, 0.75)
    label(axes, 8.8, 9.0, "an address for each, worked out by 256 threads", fontsize=8.5)
    label(axes, 27, 0.7, "TMA: one box")
    block(axes, INK.b, (20, 1.6), 15.2, 6.0, 0.85)
    frame(axes, INK.text, (20, 1.6), 15.2, 6.0)
    label(axes, 27.6, 4.6, "16 × 256 floats at (row, column)")
    label(axes, 27, 9.0, "one instruction of one thread", fontsize=8.5)
    box(axes, (21.5, 10.2), 12, 1.9, "barrier: + 16 KiB", INK.copy)
    arrow(axes, INK.line, (27.5, 9.5), (27.5, 10.1))
    return figure


@drawing
@panes(0, 18, 36)
def tile_order() -> Figure:
    """Twelve by sixteen tiles of C, of which 32 are computed at a time. Row by row they are two rows of tiles, which
    need 2 rows of A and all 16 columns of B. In bands of eight rows they are a block of 8 by 4, which needs 8 rows of A
    and 4 columns of B.
    """
    figure, axes = canvas(8.2, 3.3, 36, 14.4)
    orders = (("row by row", lambda n: (n // 16, n % 16)), ("in bands of eight rows", lambda n: (n % 8, n // 8)))
    for number, (text, place) in enumerate(orders):
        x = 2.2 + number * 18
        filled = {place(n): INK.c for n in range(32)}
        cells(axes, (x, 2.6), (12, 16), 0.85, filled)
        rows, cols = {row for row, _ in filled}, {col for _, col in filled}
        cells(axes, (x - 1.3, 2.6), (12, 1), 0.85, {(row, 0): INK.a for row in rows})
        cells(axes, (x, 1.3), (1, 16), 0.85, {(0, col): INK.b for col in cols})
        label(axes, x + 6.8, 0.6, text)
        label(axes, x + 6.8, 13.6, f"{len(rows)} rows of A, {len(cols)} columns of B", fontsize=8.5)
    return figure


@drawing
@panes(0, 18, 36)
def swizzle() -> Figure:
    """Eight rows of eight parts of 16 bytes, part 3 of each row marked. As they come the eight marked parts lie one
    below the other, in the same four banks. With the swizzle each lies at its number XOR its row, in banks of its own.
    """
    figure, axes = canvas(8.2, 3.0, 36, 13.2)
    for number, text in enumerate(("rows as they come", "part p of row r at p XOR r")):
        x = 1.6 + number * 18
        place = [(3 ^ row) if number else 3 for row in range(8)]
        cells(axes, (x, 1.6), (8, 8), 1.75, {(row, place[row]): INK.b for row in range(8)}, 1.15)
        for row in range(8):
            for col in range(8):
                part = col ^ row if number else col
                label(axes, x + 1.75 * col + 0.87, 1.6 + 1.15 * row + 0.6, str(part), fontsize=7.5)
        label(axes, x + 7, 0.7, text)
        note = f"part 3 of eight rows: {len(set(place))} × 4 banks"
        label(axes, x + 7, 12.0, note, fontsize=8.5)
    return figure
