"""The tables on standard output, and progress on standard error."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._text import aligned
from . import host_report
from .host import HostRow
from .results import Document, Row, summarise
from .runner import Progress

RICH = importlib.util.find_spec("rich") is not None  # a bar of progress; without it there are lines

TIME_UNITS = {"sgemm": ("us", 1.0), "sgemv": ("ns", 1e3), "transpose": ("us", 1.0)}


def table(op: str, rows: list[Row], peak_gflops: float) -> list[list[str]]:
    """The cells of the table of one operation, the header first."""
    if op == "host":
        return host_report.cells([row for row in rows if isinstance(row, HostRow)])
    peers = list(dict.fromkeys(name for row in rows for name in row.ratios))
    rate = ["GFLOP/s", "% of peak"] if op == "sgemm" else ["GB/s"]
    names = ["shape", "kernel", f"median {TIME_UNITS[op][0]}", *rate, *(f"x {peer}" for peer in peers)]
    return [[*names, "max error", "rel. F"], *(_cells(row, peak_gflops, peers) for row in rows)]


def _cells(row: Row, peak_gflops: float, peers: Sequence[str]) -> list[str]:
    op, timing = row.problem.op, row.timing
    scale = TIME_UNITS[op][1]
    percent = row.percent_of_peak(peak_gflops)
    rates = [_number(row.gbs)]
    if op == "sgemm":
        rates = [_number(row.gflops or 0.0), "" if percent is None else f"{percent:.1f}"]
    ratios = [f"{row.ratios[peer]:.2f}" if peer in row.ratios else "" for peer in peers]
    name = row.kernel + (" (loop)" if timing.method == "loop" else "")
    if row.accuracy is None:
        errors = ["", ""]
    elif row.wrong:
        errors = ["WRONG", f"{row.accuracy.rel_f:.1e}"]
    elif op == "transpose":
        errors = ["exact", ""]
    else:
        errors = [f"{row.accuracy.max_units:.1f}", f"{row.accuracy.rel_f:.1e}"]
    return [row.problem.label, name, _number(timing.median * scale), *rates, *ratios, *errors]


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def machine_name(document: Document) -> str:
    machine = document.header["machine"]
    return str(machine["gpu"] or machine["cpu"])


def print_tables(document: Document) -> None:
    """One table per operation, then what was skipped and what is wrong."""
    for op in dict.fromkeys(row.problem.op for row in document.rows):
        rows = [row for row in document.rows if row.problem.op == op]
        title = f"{'NumPy to NumPy' if op == 'host' else op} on {machine_name(document)}"
        if op == "sgemm":
            title += f", float32 peak {document.peak_gflops / 1e3:.2f} TFLOP/s"
        lines = table(op, rows, document.peak_gflops)
        print("\n".join([title, *aligned(lines, right=range(2, len(lines[0]))), ""]))
    print("\n".join(legend(document)))


def legend(document: Document, summary: bool = True) -> list[str]:
    """What the columns mean, the ratios over all shapes, then everything that was left out or went wrong."""
    ratios = any(row.ratios for row in document.rows)
    lines = ["Times and rates are medians of all samples."]
    if busy := document.header["machine"].get("busy"):
        lines.append(f"The machine was not free: {busy}. Times are too long, and ratios unsteady.")
    if ratios:
        lines.append("x NAME: how many times as fast as NAME in the same run.")
    for line in summarise(document.rows) if summary else ():
        lines.append(
            f"{line.op}: {line.kernel} against {line.against} over {line.shapes} shapes: "
            f"geometric mean {line.geometric_mean:.3f}, minimum {line.minimum:.3f} at {line.minimum_at}"
            + ("; in part timed by plain launches, not in a graph" if line.loop else "")
        )
    if any(row.accuracy and row.problem.op != "transpose" for row in document.rows):
        lines.append("max error: |C - float64| / (|A| |B|) in units of 2^-24; rel. F: of the norm; over sampled rows.")
    if any(row.problem.op == "host" for row in document.rows):
        lines.append(host_report.LEGEND)
    for entry in document.skipped:
        lines.append(f"skipped: {entry['op']} {entry['shape']} {entry['kernel']}: {entry['reason']}")
    for row in document.rows:
        if row.wrong:
            lines.append(f"WRONG: {row.problem.op} {row.problem.label} {row.kernel}: not within the float32 bound")
    return lines


class _Lines:
    """Progress as one line per shape."""

    def __init__(self, total: int) -> None:
        self._done, self._total = 0, total

    def step(self, text: str) -> None:
        self._done += 1
        print(f"[{self._done}/{self._total}] {text}", file=sys.stderr, flush=True)

    def detail(self, text: str) -> None:
        pass


class _Bar:
    """Progress as a bar, with what is being done behind it."""

    def __init__(self, bar: Any, total: int) -> None:
        self._bar, self._started = bar, False
        self._task = bar.add_task("", total=total, detail="")

    def step(self, text: str) -> None:
        self._bar.update(self._task, description=text, advance=1 if self._started else 0, detail="")
        self._started = True

    def detail(self, text: str) -> None:
        self._bar.update(self._task, detail=text)


@contextmanager
def progress(total: int) -> Iterator[Progress]:
    """A bar if standard error is a terminal, else lines."""
    if not (sys.stderr.isatty() and RICH):
        yield _Lines(total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    layout = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    detail = TextColumn("{task.fields[detail]}")
    with RichProgress(*layout, detail, console=Console(stderr=True), transient=True) as bar:
        yield _Bar(bar, total)
