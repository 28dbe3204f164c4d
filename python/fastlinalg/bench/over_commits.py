"""Results of asv, as tools/asv_wheels and ``asv run`` write them: what each benchmark found at each commit."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .read import UNEXPECTED, NotABenchFile

RATIO = "track_ratio_to_"


@dataclass
class Series:
    """One benchmark with one choice of parameters on one machine.

    Attributes
    ----------
    name : str
        asv's: module, class and method.
    params : tuple of str
    unit : str
    points : list of (str, float)
        Commit and figure, the oldest first. Lower is better.
    """

    name: str
    params: tuple[str, ...]
    unit: str
    points: list[tuple[str, float]] = field(default_factory=list)

    @property
    def group(self) -> str:
        """Module and class."""
        return self.name.rpartition(".")[0]

    @property
    def peer(self) -> str:
        """What the ratio is to; empty for a benchmark that is no ratio."""
        method = self.name.rpartition(".")[2]
        return method[len(RATIO) :] if method.startswith(RATIO) else ""

    @property
    def first(self) -> float:
        return self.points[0][1]

    @property
    def last(self) -> float:
        return self.points[-1][1]


@dataclass
class History:
    """One machine: its facts, the commits with results in the order of their dates, and the series."""

    machine: dict[str, str]
    commits: list[str]
    series: list[Series]


def read(folder: str) -> list[History]:
    """The machines of a folder of results that have any.

    Raises
    ------
    NotABenchFile
        The folder is not one of asv's results, or a file in it holds something else.
    """
    root = Path(folder)
    benchmarks = _load(root / "benchmarks.json")
    found = [_machine(file.parent, benchmarks) for file in sorted(root.glob("*/machine.json"))]
    return [history for history in found if history.commits]


def _load(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise NotABenchFile(f"{file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise NotABenchFile(f"{file}: not JSON ({error})") from None
    if not isinstance(data, dict):
        raise NotABenchFile(f"{file}: not a file of asv")
    return data


def _machine(folder: Path, benchmarks: dict[str, Any]) -> History:
    facts = {name: str(value) for name, value in _load(folder / "machine.json").items() if name != "version"}
    files = [(file, _load(file)) for file in folder.glob("*.json") if file.name != "machine.json"]
    by_key: dict[tuple[str, tuple[str, ...]], Series] = {}
    commits = []
    try:
        for _, data in sorted(files, key=lambda pair: (pair[1]["date"], pair[0].name)):
            commits.append(data["commit_hash"])
            for name, params, value in _figures(data, benchmarks):
                series = by_key.setdefault((name, params), Series(name, params, benchmarks[name]["unit"]))
                series.points.append((data["commit_hash"], value))
    except UNEXPECTED as error:
        raise NotABenchFile(f"{folder}: incomplete ({type(error).__name__}: {error})") from None
    order = {name: i for i, name in enumerate(benchmarks)}
    return History(facts, commits, sorted(by_key.values(), key=lambda series: order[series.name]))


def _figures(data: dict[str, Any], benchmarks: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Those of benchmarks that still are what they were then."""
    columns = data["result_columns"]
    for name, row in data["results"].items():
        entry = dict(zip(columns, row, strict=False))
        if name not in benchmarks or entry["version"] != benchmarks[name]["version"] or entry["result"] is None:
            continue
        for params, value in zip(itertools.product(*entry["params"]), entry["result"], strict=True):
            if value is not None and math.isfinite(value):
                yield name, tuple(param.strip("'") for param in params), float(value)


def mean_ratio(series: list[Series], which: str) -> float | None:
    """Geometric mean of the ratios at the "first" or the "last" commit of each series."""
    values = [getattr(one, which) for one in series if getattr(one, which) > 0]
    return statistics.geometric_mean(values) if values else None
