"""Drawings of the SGEMM ladder: who reads what."""

from __future__ import annotations

import figures
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .draw import INK, arrow, bars, block, box, canvas, cells, drawing, frame, label, panes


def _matrix(axes: Axes, at: tuple[float, float], name: str, filled: dict[tuple[int, int], str]) -> None:
    """Eight rows of two sectors, that is of sixteen floats."""
    cells(axes, at, (8, 16), 0.5, filled)
    for sector in range(2):
        frame(axes, INK.line, (at[0] + sector * 4, at[1]), 4, 4, 1.0)
    label(axes, at[0] + 4, at[1] - 0.6, name, fontsize=10)


def _warp(down: bool) -> Figure:
    """What eight neighbouring threads touch at one l; a sector is eight cells wide."""
    figure, axes = canvas(7.6, 2.1, 27, 6.2)
    many_a = {(row, 3): INK.a for row in range(8)}
    if down:
        touched = (many_a, {(3, 2): INK.b}, {(row, 2): INK.c for row in range(8)})
    else:
        row_of = {col: (3, col) for col in range(8)}
        touched = ({(3, 3): INK.a}, {row_of[c]: INK.b for c in row_of}, {row_of[c]: INK.c for c in row_of})
    for number, (name, filled) in enumerate(zip("ABC", touched, strict=True)):
        _matrix(axes, (0.5 + number * 9, 1.2), name, filled)
    if down:
        notes = ("8 sectors for 8 floats", "one float for all", "8 sectors for 8 floats")
    else:
        notes = ("one float for all", "1 sector for 8 floats", "1 sector for 8 floats")
    for number, note in enumerate(notes):
        label(axes, 4.5 + number * 9, 5.75, note)
    return figure


@drawing
@panes(0, 9, 18, 27)
def naive() -> Figure:
    """Eight threads of a warp read eight rows of A, each in a sector of its own, one common element of B, and
    write eight rows of C.
    """
    return _warp(down=True)


@drawing
@panes(0, 9, 18, 27)
def coalesced() -> Figure:
    """Eight threads of a warp read one common element of A, eight neighbouring elements of one row of B in one
    sector, and write eight neighbouring elements of C.
    """
    return _warp(down=False)


@drawing
def smem() -> Figure:
    """A tile of A and a tile of B are copied from global memory into shared memory; from there each thread
    reads a row of one and a column of the other.
    """
    figure, axes = canvas(7.6, 4.0, 22, 11.6)
    label(axes, 3.5, 0.5, "global memory", fontsize=10)
    cells(axes, (0.5, 6), (4, 4), 1, {(2, 0): INK.a, (2, 1): INK.a, (2, 2): INK.a, (2, 3): INK.a})
    cells(axes, (5, 1.2), (4, 4), 1, {(0, 1): INK.b, (1, 1): INK.b, (2, 1): INK.b, (3, 1): INK.b})
    cells(axes, (5, 6), (4, 4), 1, {(2, 1): INK.c})
    for name, x, y in (("A", 2.5, 10.5), ("B", 9.5, 3.2), ("C", 7, 10.5)):
        label(axes, x, y, name, fontsize=10)
    frame(axes, INK.text, (1.5, 8), 1, 1)
    frame(axes, INK.text, (6, 2.2), 1, 1)
    label(axes, 15.4, 0.5, "a block of 32 × 32 threads", fontsize=10)
    box(axes, (12, 1.4), 6.8, 3.1, "", INK.line)
    cells(axes, (12.5, 2.2), (4, 4), 0.5, {(1, c): INK.a for c in range(4)})
    cells(axes, (16, 2.2), (4, 4), 0.5, {(r, 2): INK.b for r in range(4)})
    label(axes, 13.5, 1.8, "As")
    label(axes, 17, 1.8, "Bs")
    label(axes, 20.4, 3, "shared\nmemory")
    cells(axes, (14.4, 7.4), (4, 4), 0.5, {(1, 2): INK.c})
    label(axes, 15.4, 10, "each thread: one element,\nits row of As times its column of Bs")
    arrow(axes, INK.a, (2.6, 8.0), (12.4, 3.4))
    arrow(axes, INK.b, (7.1, 2.5), (12.4, 2.6))
    arrow(axes, INK.a, (13.5, 4.3), (15.3, 7.3))
    arrow(axes, INK.b, (17, 4.3), (15.7, 7.3))
    return figure


def _thread_tile(rows: int, cols: int, note: str) -> Figure:
    """One k: the values of A and B that a thread holds in registers, and the sums that they feed."""
    size = 0.7 if rows > 4 else 1.0
    high = max(rows * size, 2)
    figure, axes = canvas(7.0, 0.42 * (high + 3.4), 17, high + 3.4)
    cells(axes, (1.2, 2.2), (rows, 1), size, {(r, 0): INK.a for r in range(rows)})
    cells(axes, (3.2, 0.8), (1, cols), size, {(0, c): INK.b for c in range(cols)})
    cells(axes, (3.2, 2.2), (rows, cols), size, {(r, c): INK.c for r in range(rows) for c in range(cols)})
    label(axes, 0.5, 2.2 + rows * size / 2, "A")
    label(axes, 2.7, 0.8 + size / 2, "B")
    label(axes, 11.3 if rows <= 4 else 13, 2.2 + high / 2 - 0.4, note, ha="center")
    return figure


@drawing
def blocktile_1d() -> Figure:
    """One value of A and four neighbouring values of B feed four sums."""
    return _thread_tile(1, 4, "5 floats read, 4 FMAs\n1.25 floats for an FMA")


@drawing
def blocktile_2d() -> Figure:
    """Four values of A and four values of B feed sixteen sums."""
    return _thread_tile(4, 4, "8 floats read, 16 FMAs\n0.5 floats for an FMA")


@drawing
def blocktile_8x8() -> Figure:
    """Eight values of A and eight values of B feed sixty-four sums."""
    return _thread_tile(8, 8, "16 floats read, 64 FMAs\n0.25 floats for an FMA")


@drawing
def vectorized() -> Figure:
    """Thirty-two floats moved by thirty-two threads with four bytes each, or by eight threads with sixteen
    bytes each.
    """
    figure, axes = canvas(7.6, 2.3, 34, 9.6)
    for y, per_thread, text in (
        (1.4, 1, "4-byte loads: 32 threads, one float each"),
        (6.2, 4, "16-byte loads: 8 threads"),
    ):
        label(axes, 1, y - 0.7, text, ha="left")
        filled = {(0, c): (INK.a if c // per_thread % 2 == 0 else INK.b) for c in range(32)}
        cells(axes, (1, y), (1, 32), 1, filled)
        for first in range(0, 32, per_thread):
            frame(axes, INK.text, (1 + first, y), per_thread, 1, 0.9)
            if per_thread == 4 or first % 4 == 0:
                label(axes, 1 + first + per_thread / 2, y + 1.6, f"{first // per_thread}", fontsize=8)
    return figure


def _banks(axes: Axes, y: float, starts: list[int], text: str) -> None:
    """Which of the 32 banks eight threads touch that read 16 bytes each from `starts` on."""
    label(axes, 1, y - 0.7, text, ha="left")
    users: dict[int, list[int]] = {}
    for thread, start in enumerate(starts):
        for bank in range(start, start + 4):
            users.setdefault(bank % 32, []).append(thread)
    deep = max(len(threads) for threads in users.values())
    filled = {}
    for bank, threads in users.items():
        for level in range(len(threads)):
            filled[(level, bank)] = INK.bad if len(threads) > 1 else INK.b
    cells(axes, (1, y), (deep, 32), 1, filled)
    for bank in range(0, 32, 4):
        for level, thread in enumerate(users.get(bank, [])):
            label(axes, 3 + bank, y + level + 0.5, f"thread {thread}", fontsize=7.5)
        label(axes, 3 + bank, y + deep + 0.5, f"banks {bank}–{bank + 3}", fontsize=7)


@drawing
def banks_8x8() -> Figure:
    """Eight threads that read sixteen bytes each, thirty-two bytes apart, hit only half of the banks, two
    threads in each.
    """
    figure, axes = canvas(8.4, 1.5, 34, 5.4)
    _banks(axes, 1.6, [8 * t for t in range(8)], "blocktile_8x8: the first float4 of Bs of eight threads")
    return figure


@drawing
def bank_conflict_free() -> Figure:
    """Eight threads that read sixteen bytes each, sixteen bytes apart, hit all thirty-two banks once. Below,
    the four quadrants of one thread in the tile.
    """
    figure, axes = canvas(8.4, 4.2, 34, 17.2)
    _banks(axes, 1.6, [4 * t for t in range(8)], "bank_conflict_free: the first float4 of Bs of eight threads")
    filled = {}
    for row, col in ((1, 2), (1, 10), (9, 2), (9, 10)):
        filled[(row, col)] = INK.c
    cells(axes, (4, 6.8), (16, 16), 0.6, filled)
    frame(axes, INK.text, (4, 6.8), 9.6, 9.6)
    label(axes, 23.5, 10, "one thread's four 4 × 4 quadrants\nin the block's tile of 128 × 128", fontsize=9)
    label(
        axes,
        23.5,
        13,
        "(drawn with 16 × 16 cells;\nin the kernel a half of the tile is 64 wide)",
        fontsize=8.5,
    )
    return figure


@drawing
def double_buffered() -> Figure:
    """Two time lines. With one tile, loading and multiplying alternate with two barriers a step. With two
    tiles, the loads of the next step run beside the multiplication, with one barrier a step.
    """
    figure, axes = canvas(8.4, 3.5, 36, 14.4)
    label(
        axes,
        0.3,
        0.7,
        "one tile (bank_conflict_free): within a block, loads and multiplication take turns",
        ha="left",
    )
    x = 0.5
    for step in range(4):
        bars(axes, 1.5, [(x, x + 4.2, INK.copy, f"load {step}")], 1.4)
        bars(axes, 3.1, [(x + 4.2, x + 8.6, INK.c, f"multiply {step}")], 1.4)
        for barrier in (x + 4.2, x + 8.6):
            block(axes, INK.bad, (barrier - 0.12, 1.3), 0.24, 3.4)
        x += 8.6
    label(
        axes,
        0.3,
        7.2,
        "two tiles (double_buffered): the loads of the next step run beside the multiplication",
        ha="left",
    )
    bars(axes, 8, [(0.5, 4.7, INK.copy, "load 0")], 1.4)
    x = 4.7
    for step in range(4):
        block(axes, INK.bad, (x - 0.12, 7.8), 0.24, 3.4)
        bars(axes, 9.6, [(x, x + 4.4, INK.c, f"multiply {step}")], 1.4)
        if step < 3:
            bars(axes, 8, [(x, x + 4.2, INK.copy, f"load {step + 1}")], 1.4)
        x += 4.4
    block(axes, INK.bad, (0.5, 12.7), 0.24, 1.2)
    label(axes, 1.2, 13.3, "barrier: all threads of the block wait for one another", ha="left")
    return figure


@drawing
def ladder_speeds() -> Figure:
    """Bar chart of the speed of the steps of the ladder, of cuBLAS, and of the two precisions that dispatch picks, at
    M = N = 4096.
    """
    names = [*figures.LADDER, "cuBLAS", "strict", "accurate"]
    shape = (4096, 4096, 1024)
    speeds = [figures.terms("sgemm", name, shape) for name in (*figures.LADDER, "torch")]
    speeds += [figures.terms(f"sgemm-{name}", "dispatch", shape) for name in ("strict", "accurate")]
    figure = plt.figure(figsize=(8.0, 3.6))
    axes = figure.add_axes((0.2, 0.05, 0.78, 0.92))
    colours = [INK.a] * len(figures.LADDER) + [INK.wait, INK.c, INK.b]
    axes.barh(names, speeds, color=colours)
    axes.invert_yaxis()
    peak = figures.results("sgemm")["machine"]["peak_gflops"] / 1e3
    axes.axvline(peak, color=INK.line, linestyle="--")
    axes.text(peak + 2, 1, f"float32 peak, {figures.significant(peak)}", va="center", color=INK.text, fontsize=9)
    for place, speed in enumerate(speeds):
        axes.text(speed + 2, place, figures.significant(speed), va="center", color=INK.text, fontsize=9)
    axes.set_xlim(0, max(speeds) * 1.12)
    axes.set_xticks([])
    axes.tick_params(colors=INK.text, length=0, labelsize=9)
    axes.set_facecolor("none")
    for side in axes.spines.values():
        side.set_visible(False)
    return figure
