"""Drawings of the strict kernels: roles, and ways to divide k."""

from __future__ import annotations

import figures
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .draw import INK, arrow, bars, block, box, canvas, cells, drawing, label, panes


@drawing
def warp_specialization() -> Figure:
    """Four producer warps fill a ring of stages in shared memory; eight consumer warps empty them. Each stage
    has a barrier for full and one for empty.
    """
    figure, axes = canvas(5.2, 3.1, 24, 14.4)
    label(axes, 2.9, 0.8, "4 warps copy")
    label(axes, 11.9, 0.8, "shared memory")
    label(axes, 20.8, 0.8, "8 warps multiply")
    for warp in range(4):
        box(axes, (0.4, 2 + warp * 2.6), 5, 1.8, f"producer {warp}", INK.copy)
    for stage in range(4):
        y = 2 + stage * 2.6
        block(axes, INK.a, (9.2, y), 2.6, 1.8, 0.8 if stage < 3 else 0.15)
        block(axes, INK.b, (12, y), 2.6, 1.8, 0.8 if stage < 3 else 0.15)
        label(axes, 10.5, y + 0.9, "A")
        label(axes, 13.3, y + 0.9, "B")
    for warp in range(8):
        box(axes, (18 + warp % 2 * 3, 2 + warp // 2 * 2.6), 2.7, 1.8, "FMA", INK.c)
    arrow(axes, INK.copy, (5.6, 5.5), (9.1, 5.5))
    label(axes, 7.3, 4.8, "full")
    arrow(axes, INK.c, (14.7, 5.5), (17.9, 5.5))
    label(axes, 16.3, 4.8, "read")
    arrow(axes, INK.line, (17.9, 9.5), (5.6, 9.5))
    label(axes, 16.3, 8.7, "empty")
    label(axes, 11.9, 13.4, "stages: full · full · full · being filled")
    return figure


def _steps(axes: Axes, at: tuple[float, float], owners: list[int], colours: list[str]) -> None:
    filled = {(0, step): colours[owner] for step, owner in enumerate(owners)}
    cells(axes, at, (1, len(owners)), 0.9, filled, 1.4)
    for step, owner in enumerate(owners):
        label(axes, at[0] + 0.9 * step + 0.45, at[1] + 0.7, str(owner), fontsize=8)


@drawing
@panes(0, 18.5, 36)
def ways_to_cut_k() -> Figure:
    """Left, the steps along k go to four groups of warps of a block in turn. Right, two blocks of a cluster
    take half of k each, and one adds the other's sums through its shared memory.
    """
    figure, axes = canvas(8.2, 2.7, 36, 11.6)
    colours = [INK.a, INK.b, INK.c, INK.copy]
    label(axes, 8, 0.8, "sliced-K: four groups of warps of a block")
    _steps(axes, (0.8, 1.9), [step % 4 for step in range(16)], colours)
    label(axes, 8, 4.1, "steps along k, and the group that takes each", fontsize=8)
    for group in range(4):
        block(axes, colours[group], (0.8 + group * 3.7, 5.4), 3.0, 2.0, 0.75)
        label(axes, 2.3 + group * 3.7, 6.4, "sums", fontsize=8)
        arrow(axes, INK.line, (2.3 + group * 3.7, 7.6), (8, 9.4))
    box(axes, (6, 9.5), 4.2, 1.6, "tile of C", INK.text)
    label(axes, 27.5, 0.8, "a cluster of two blocks")
    _steps(axes, (20.3, 1.9), [step // 8 for step in range(16)], colours)
    label(axes, 27.5, 4.1, "the block that takes each", fontsize=8)
    for rank in range(2):
        block(axes, colours[rank], (21 + rank * 8, 5.4), 4.5, 2.0, 0.75)
        label(axes, 23.2 + rank * 8, 6.4, f"block {rank}", fontsize=8)
        arrow(axes, INK.line, (23.2 + rank * 8, 7.6), (27.3, 9.4))
    box(axes, (25.2, 9.5), 4.2, 1.6, "tile of C", INK.text)
    return figure


@drawing
@panes(0, 26, 52)
def stream_k() -> Figure:
    """Left, eleven tiles on four blocks take three rounds, one block idle in the last. Right, the last seven
    tiles are cut into four equal pieces, and all blocks end together.
    """
    figure, axes = canvas(8.4, 2.8, 52, 16.4)
    colours = [INK.a, INK.b, INK.c, INK.copy]
    label(axes, 12.5, 0.9, "tile by tile: 24 steps")
    for slot in range(12):
        number, y = slot, 2 + slot % 4 * 3
        start = 1 + slot // 4 * 8
        idle = number >= 11
        bars(
            axes,
            y,
            [(start, start + 8, INK.empty if idle else colours[slot // 4], "" if idle else str(number))],
            2.2,
        )
    label(axes, 38, 0.9, "stream-K: 22 steps")
    tiles, blocks, steps = 11, 4, 8
    rest = 7 * steps
    for number in range(blocks):
        first, last = number * rest // blocks, (number + 1) * rest // blocks
        units = [(4 + last // steps, last % steps), (number, steps)]
        whole = -(-first // steps)
        units += [(4 + tile, steps) for tile in range(whole, last // steps)]
        units += [(4 + first // steps, steps - first % steps)] if first % steps else []
        x = 27.0
        for tile, length in units:
            if length:
                shade = colours[0] if tile < 4 else colours[1 + tile % 3]
                bars(axes, 2 + number * 3, [(x, x + length, shade, str(tile))], 2.2)
                x += length
    assert tiles == 4 + rest // steps
    for x in (25, 49):
        axes.plot([x, x], [1.7, 14], color=INK.bad, linewidth=1.2)
    label(axes, 12.5, 15.3, "one line for each block; time runs to the right", fontsize=8)
    return figure


@drawing
def ends() -> Figure:
    """Bars of three kernels, each cut into four parts: before the first copy, before the first FMA, the FMAs, and the
    sums and stores at the end. At 256 the FMAs are half of the bar, at 1024 most of it.
    """
    names = ("last store to the next", "first copy to the first FMA", "along k, to the end", "sums of the groups")
    rows = [figures.notebook("notes/strict_hopper_2026-11", name) for name in names]
    figure, axes = canvas(8.2, 2.6, 36, 11.2)
    parts = (INK.wait, INK.copy, INK.c, INK.bad)
    for line, (text, column) in enumerate((("256", 0), ("512", 2), ("1024", 4))):
        cycles = [float(row[column].split(",")[0]) for row in rows]  # of the first group, where there are several
        scale, x = 28 / sum(cycles), 6.5
        label(axes, 6, 1.2 + line * 2.6, f"{text}: {sum(cycles) / 1980:.1f} µs", ha="right")
        for part, colour in zip(cycles, parts, strict=True):
            bars(axes, 0.4 + line * 2.6, [(x, x + part * scale, colour, f"{part / 1980:.1f}")], 1.7)
            x += part * scale
    for number, (text, colour) in enumerate(
        zip(("launch", "first copies", "FMAs", "sums, stores"), parts, strict=True)
    ):
        block(axes, colour, (7 + number * 7, 9.2), 0.9, 0.9)
        label(axes, 8.3 + number * 7, 9.65, text, ha="left")
    return figure
