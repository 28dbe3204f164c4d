"""Plots: lines over the size for SGEMM, grouped bars for the others, points for many shapes of any kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from . import host_report
from .curves import FONT_SIZE, colours, legend_beside, width
from .results import Document, Row

MANY_SHAPES = 20


def figures(document: Document) -> Iterator[tuple[str, Figure]]:
    """A figure for each operation."""
    for op in dict.fromkeys(row.problem.op for row in document.rows):
        rows = [row for row in document.rows if row.problem.op == op]
        figure = Figure(figsize=(10, 6), layout="constrained")
        axes = figure.subplots()
        many = len({row.problem for row in rows}) > MANY_SHAPES
        draw = host_report.plot if op == "host" else _points if many else _lines if op == "sgemm" else _bars
        draw(axes, rows, document)
        machine = document.header["machine"]
        axes.set_title(f"{op}, float32, {machine['gpu'] or machine['cpu']}, fastlinalg {document.header['version']}")
        if busy := machine.get("busy"):
            figure.suptitle(f"The machine was not free: {busy}", color="red", fontsize=FONT_SIZE)
        yield op, figure


def write(document: Document, path: str) -> list[str]:
    """One file per operation; with several, the operation is put before the suffix.

    Returns
    -------
    list of str
        The files written.
    """
    several = len({row.problem.op for row in document.rows}) > 1
    written = []
    for op, figure in figures(document):
        target = Path(path)
        target = target.with_stem(f"{target.stem}-{op}") if several else target
        figure.savefig(target, dpi=150)
        written.append(str(target))
    return written


def _names(rows: list[Row]) -> dict[str, bool]:
    return {row.kernel: row.peer for row in rows}


def _lines(axes: Any, rows: list[Row], document: Document) -> None:
    """GFLOP/s at the median time over M = N, or over the side of a square as large as C."""
    names = _names(rows)
    count = Counter(row.problem.k for row in rows)
    depths = {k: number == max(count.values()) for k, number in sorted(count.items())}  # a line for the usual K
    for name, peer in names.items():
        look = {"color": colours(names)[name], "linewidth": width(name, peer), "zorder": 2 + width(name, peer)}
        for k, line in depths.items():
            mine = [row for row in rows if row.kernel == name and row.problem.k == k]
            points = sorted(((row.problem.m * row.problem.n) ** 0.5, row.gflops or 0.0) for row in mine)
            if not points:
                continue
            style = {"marker": "o", "markersize": 3, "label": name} if line else {"marker": "x", "markersize": 5}
            axes.plot(*zip(*points, strict=True), ("--" if peer else "-") if line else "none", **look, **style)
    if document.peak_gflops:
        axes.axhline(document.peak_gflops, color="red", linewidth=1, linestyle=":", label="float32 peak")
    square = all(row.problem.m == row.problem.n for row in rows)
    axes.set_xscale("log", base=2)
    ticks = sorted({(row.problem.m * row.problem.n) ** 0.5 for row in rows})
    axes.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks], rotation=45)
    axes.set_xlabel(
        ("M = N" if square else "sqrt(M N)")
        + f", K = {', '.join(str(k) if line else f'{k} (x)' for k, line in depths.items())}"
    )
    axes.set_ylabel("GFLOP/s (median)")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    legend_beside(axes)


def _points(axes: Any, rows: list[Row], document: Document) -> None:
    """The ratios to what is compared with, else the rate, over the time at the peak or the bytes that move."""
    product = rows[0].problem.op == "sgemm"
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        for name, ratio in ({} if row.peer else row.ratios).items():
            pairs.setdefault((row.kernel, name), []).append((row.problem.work, ratio))
    if not pairs:
        for row in rows:
            pairs.setdefault((row.kernel, ""), []).append((row.problem.work, (row.gflops if product else row.gbs) or 0))
    for (kernel, name), points in pairs.items():
        axes.plot(*zip(*points, strict=True), "o", markersize=3, label=f"{kernel} / {name}" if name else kernel)
    axes.set_xscale("log")
    axes.set_xlabel("floating-point operations" if product else "bytes that have to move")
    axes.set_ylabel(
        "times as fast" if any(name for _, name in pairs) else f"{'GFLOP/s' if product else 'GB/s'} (median)"
    )
    axes.set_yscale("log")
    axes.axhline(1.0, color="black", linewidth=1)
    axes.grid(alpha=0.3)
    legend_beside(axes)


def _bars(axes: Any, rows: list[Row], document: Document) -> None:
    """GB/s at the median time, one group per shape."""
    shapes = list(dict.fromkeys(row.problem.label for row in rows))
    names = _names(rows)
    each = 0.85 / len(names)
    for i, (name, peer) in enumerate(names.items()):
        mine = {row.problem.label: row.gbs for row in rows if row.kernel == name}
        places = [shapes.index(label) - 0.425 + (i + 0.5) * each for label in mine]
        look = {"color": colours(names)[name], "hatch": "//" if peer else None, "label": name}
        axes.bar(places, list(mine.values()), each, **look)
    axes.set_xticks(range(len(shapes)), shapes)
    axes.set_ylabel("GB/s (median)")
    axes.grid(axis="y", alpha=0.3)
    legend_beside(axes)
