"""The tables on standard output, and progress on standard error."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._text import aligned
from . import host_report
from .host import HostRow
from .results import Document, Row, summarise
from .runner import Progress

RICH = importlib.util.find_spec("rich") is not None  # colours and a bar; without it everything is plain text

TIME_UNITS = {"sgemm": ("us", 1.0), "sgemv": ("ns", 1e3), "transpose": ("us", 1.0)}


def columns(op: str, peers: Sequence[str]) -> list[str]:
    """The header of the table of one operation."""
    unit = TIME_UNITS[op][0]
    rate = ["GFLOP/s", "% of peak"] if op == "sgemm" else ["GB/s"]
    return ["shape", "kernel", f"median {unit}", *rate, *(f"x {peer}" for peer in peers), "max error", "rel. F"]


def cells(row: Row, peak_gflops: float, peers: Sequence[str]) -> list[str]:
    """One line of it."""
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
        if op == "host":
            table = host_report.table([row for row in rows if isinstance(row, HostRow)])
            print("\n".join([f"NumPy to NumPy on {machine_name(document)}", *table, ""]))
            continue
        peers = list(dict.fromkeys(name for row in rows for name in row.ratios))
        title = f"{op} on {machine_name(document)}"
        if op == "sgemm":
            title += f", float32 peak {document.peak_gflops / 1e3:.2f} TFLOP/s"
        _print_table(title, columns(op, peers), rows, document.peak_gflops, peers)
    notes = legend(document)
    print("\n".join(notes))


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


def _print_table(title: str, names: list[str], rows: list[Row], peak_gflops: float, peers: Sequence[str]) -> None:
    lines = [cells(row, peak_gflops, peers) for row in rows]
    plain = aligned([names, *lines], right=range(2, len(names)))
    # Cells have one more blank on a terminal. A table that does not fit is printed plain rather than cut.
    fits = len(plain[0]) + len(names) <= shutil.get_terminal_size().columns
    if not (sys.stdout.isatty() and fits and RICH):
        print("\n".join([title, *plain, ""]))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for i, name in enumerate(names):
        table.add_column(name, justify="left" if i < 2 else "right", no_wrap=True)
    for row, line, following in zip(rows, lines, [*rows[1:], None], strict=True):
        last = following is None or following.problem != row.problem
        style = "bold red" if row.wrong else "dim" if row.peer else None
        table.add_row(*line, style=style, end_section=last)
    Console().print(table)


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
