"""The benchmarks as a list of cases: a name, one choice of parameters, and the set it belongs to."""

from __future__ import annotations

import importlib
import inspect
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent
MODULES = ("cpu", "calls", "process", "host", "kernels", "gpu")


@dataclass(frozen=True)
class Case:
    """One number to measure. `name` and `params` are asv's; lower is better."""

    name: str
    params: tuple[Any, ...]
    unit: str
    version: str
    quick: bool

    @property
    def label(self) -> str:
        return f"{self.name}({', '.join(map(str, self.params))})" if self.params else self.name


def _classes() -> Iterator[tuple[str, type]]:
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    for module in MODULES:
        found = importlib.import_module(f"benchmarks.{module}")
        for name, value in vars(found).items():
            if inspect.isclass(value) and value.__module__ == found.__name__ and not name.startswith("_"):
                yield f"{module}.{name}", value


def methods() -> Iterator[tuple[str, type, Any]]:
    """Each benchmark's name, class and function."""
    for prefix, kind in _classes():
        for name, function in inspect.getmembers(kind, inspect.isfunction):
            if name.startswith("track_"):
                yield f"{prefix}.{name}", kind, function


def every() -> list[Case]:
    """All cases, in the order of the files; needs fastlinalg, as the benchmarks import it."""
    found = []
    for name, kind, function in methods():
        quick = {tuple(params) for params in getattr(kind, "quick", {}).get(function.__name__, ())}
        for params in itertools.product(*getattr(kind, "params", ())):
            found.append(Case(name, params, function.unit, str(kind.version), params in quick))
    return found


def chosen(cases: Iterable[Case], which: str, pattern: str = "") -> list[Case]:
    """Those of a set, "quick" or "full", whose label has a match of the regular expression."""
    return [case for case in cases if (case.quick or which == "full") and re.search(pattern, case.label)]


def regex(cases: Iterable[Case]) -> str:
    """The cases as a regular expression for `asv run --bench`, which matches names with parameters in repr()."""
    by_name: dict[str, list[Case]] = {}
    for case in cases:
        by_name.setdefault(case.name, []).append(case)
    parts = []
    for name, group in by_name.items():
        rows = "|".join(re.escape(", ".join(map(repr, case.params))) for case in group)
        parts.append(f"^{re.escape(name)}\\(({rows})\\)$" if group[0].params else f"^{re.escape(name)}$")
    return "|".join(parts)
