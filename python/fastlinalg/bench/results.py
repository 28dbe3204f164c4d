"""Measured rows, and the JSON and CSV files that hold them."""

from __future__ import annotations

import csv
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import records
from .contenders import dispatched
from .operands import Accuracy
from .problems import Problem
from .timing import Timing

SCHEMA = 1


@dataclass
class Row:
    """One contender on one problem."""

    problem: Problem
    kernel: str
    peer: bool
    timing: Timing
    accuracy: Accuracy | None
    ratios: dict[str, float] = field(default_factory=dict)

    @property
    def entry(self) -> str:
        """What the row is about, in the summary."""
        return self.kernel

    @property
    def headline(self) -> bool:
        """Whether it counts in the summary."""
        return not self.peer

    @property
    def wrong(self) -> bool:
        return self.accuracy is not None and not self.accuracy.ok and self.kernel != "tf32"  # which rounds operands

    @property
    def gflops(self) -> float | None:
        """At the median time."""
        return self.problem.flops / self.timing.median / 1e3 if self.problem.flops else None

    @property
    def gbs(self) -> float:
        """Gigabytes per second at the median time, of the bytes that have to move at least."""
        return self.problem.bytes / self.timing.median / 1e3

    def percent_of_peak(self, peak_gflops: float) -> float | None:
        """At the median time; only for products of matrices, the others are not bound by arithmetic."""
        if not self.problem.product or not peak_gflops:
            return None
        return 100.0 * self.problem.flops / self.timing.median / 1e3 / peak_gflops

    def as_dict(self, peak_gflops: float) -> dict[str, Any]:
        problem, timing, accuracy = self.problem, self.timing, self.accuracy
        return {
            "op": problem.op,
            "kernel": self.kernel,
            "peer": self.peer,
            "shape": {"m": problem.m, "n": problem.n, "k": problem.k if problem.product else None},
            "trans": problem.transposition,
            "batch": problem.batch,
            "own": problem.own,
            "layout": "row-major",
            "row_pads": {"a": problem.pads[0], "out": problem.pads[1]},
            "data": problem.data,
            "offsets": dict(zip(("a", "b", "out"), problem.offsets, strict=True)),
            "samples_us": timing.samples,
            "median_us": timing.median,
            "gflops": self.gflops,
            "gbs": self.gbs,
            "percent_of_peak": self.percent_of_peak(peak_gflops),
            "ratios": self.ratios,
            "error": accuracy and {"ok": accuracy.ok, "max_units": accuracy.max_units, "rel_f": accuracy.rel_f},
            "method": timing.method,
            "clocks": timing.clocks,
        }


@dataclass(frozen=True)
class Summary:
    """How one of our contenders did against one reference over all shapes of an operation."""

    op: str
    kernel: str
    against: str
    shapes: int
    geometric_mean: float
    minimum: float
    minimum_at: str
    loop: bool  # one of the two was timed by plain launches, which the host slows down


def summarise(rows: list[Row]) -> list[Summary]:
    """The dispatched contenders, or the kernels by name where none is among the rows; over two shapes or more."""
    pairs: dict[tuple[str, str, str], list[tuple[float, str]]] = {}
    for row in rows:
        for name, ratio in row.ratios.items() if row.headline else ():
            pairs.setdefault((row.problem.op, row.entry, name), []).append((ratio, row.problem.label))
    looped = {(row.problem.op, row.kernel) for row in rows if row.timing.method == "loop"}
    some = {key[:2] for key in pairs if dispatched(key[1])}
    found = []
    for (op, kernel, against), ratios in pairs.items():
        if len(ratios) < 2 or (not dispatched(kernel) and any(key[0] == op for key in some)):
            continue
        mean = statistics.geometric_mean(ratio for ratio, _ in ratios)
        loop = (op, kernel) in looped or (op, against) in looped
        found.append(Summary(op, kernel, against, len(ratios), mean, *min(ratios), loop))
    return found


@dataclass
class Document:
    """Everything one run of ``fastlinalg bench`` found; ``fastlinalg.bench`` documents the schema."""

    header: dict[str, Any]
    peak_gflops: float
    rows: list[Row] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        rows = [row.as_dict(self.peak_gflops) for row in self.rows]
        summary = [asdict(line) for line in summarise(self.rows)]
        return {"schema": SCHEMA, **self.header, "rows": rows, "summary": summary, "skipped": self.skipped}

    def write_json(self, path: str) -> None:
        records.write(path, self.as_dict())

    def write_csv(self, path: str) -> None:
        """One line per row, nested objects flattened to ``error_rel_f`` and the like, without the samples."""
        lines = [_flat(row.as_dict(self.peak_gflops)) for row in self.rows]
        names = dict.fromkeys(name for line in lines for name in line)
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(names))
            writer.writeheader()
            writer.writerows(lines)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            prefix = "" if name == "shape" else {"ratios": "times_as_fast_as_"}.get(name, f"{name}_")
            flat.update({prefix + key: inner for key, inner in value.items()})
        elif name not in ("samples_us", "error", "clocks"):
            flat[name] = value
    return flat
