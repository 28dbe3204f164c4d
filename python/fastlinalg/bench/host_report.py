"""The table and the plot of calls from NumPy to NumPy."""

from __future__ import annotations

from typing import Any

from .curves import colours, legend_beside, width
from .host import MODES, HostRow
from .results import Document, Row


def cells(rows: list[HostRow]) -> list[list[str]]:
    """A header, and one line per shape and contender with one column per mode: medians in milliseconds."""
    seen = dict.fromkeys(row.mode for row in rows)
    modes = [*(mode for mode in MODES if mode in seen), *(mode for mode in seen if mode not in MODES)]
    peers = list(dict.fromkeys(name for row in rows for name in row.ratios))
    names = ["shape", "contender", *(f"{mode.label} ms" for mode in modes), "link ms", "of link"]
    names += [f"x {peer}{suffix}" for peer in peers for suffix in ("", ", out")] + ["max error"]
    lines = [names]
    groups: dict[tuple[str, str], list[HostRow]] = {}
    for row in rows:
        groups.setdefault((row.problem.label, row.kernel), []).append(row)
    for (shape, contender), group in groups.items():
        by_mode = {row.mode: row for row in group}
        times = [_milliseconds(by_mode[mode].timing.median) if mode in by_mode else "" for mode in modes]
        fresh, out = by_mode.get(MODES[0], group[0]), by_mode.get(MODES[2], group[0])
        link = ["", ""]
        if out.link_us is not None and out.link_share is not None:
            link = [_milliseconds(out.link_us), f"{100 * out.link_share:.0f}%"]
        ratios = [f"{row.ratios[peer]:.2f}" if peer in row.ratios else "" for peer in peers for row in (fresh, out)]
        error = "" if fresh.accuracy is None else "WRONG" if fresh.wrong else f"{fresh.accuracy.max_units:.1f}"
        lines.append([shape, contender, *times, *link, *ratios, error])
    return lines


def _milliseconds(microseconds: float) -> str:
    value = microseconds / 1e3
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 10 else f"{value:.1f}"


LEGEND = """\
ms: medians of whole calls; fresh: into new memory, reused: the last result's memory may come back, out: into the
caller's array; paused: after 2 ms of sleep. link: the bytes from and to pinned memory, both ways at once, and its share
of the time with out. x NAME: how many times as fast with a fresh result, and with out."""


def plot(axes: Any, rows: list[Row], _: Document) -> None:
    """Milliseconds over the size for square matrices with a fresh result; all shapes if none is square."""
    fresh = [row for row in rows if isinstance(row, HostRow) and row.mode == MODES[0]]
    square = [row for row in fresh if row.problem.m == row.problem.n == row.problem.k and row.problem.layout == "C"]
    chosen = square or fresh
    sizes = {row.problem: (row.problem.flops / 2) ** (1 / 3) for row in chosen}
    names = {row.kernel: row.peer for row in chosen}
    for name, is_peer in names.items():
        points = sorted((sizes[row.problem], row.timing.median / 1e3) for row in chosen if row.kernel == name)
        look = {"color": colours(names)[name], "linewidth": width(name, is_peer), "label": name}
        axes.plot(*zip(*points, strict=True), "--" if is_peer else "-", marker="o", markersize=3, **look)
    link = sorted({(sizes[row.problem], row.link_us / 1e3) for row in chosen if row.link_us is not None})
    if link:
        axes.plot(*zip(*link, strict=True), ":", color="red", label="link, both ways at once")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted(set(sizes.values())), [f"{size:.0f}" for size in sorted(set(sizes.values()))], rotation=45)
    axes.set_xlabel("M = N = K" if square else "cube root of M N K")
    axes.set_ylabel("ms per call, NumPy to NumPy, fresh result (median)")
    axes.grid(alpha=0.3)
    legend_beside(axes)
