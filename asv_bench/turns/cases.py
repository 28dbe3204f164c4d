"""The benchmarks as a list of cases: a name, one choice of parameters, and the set it belongs to."""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent
MODULES = ("cpu", "calls", "process", "host", "kernels", "gpu")
ANYWHERE = ("calls", "wide")  # modules of the wide set on any machine
MOST_ON_CPU, MOST_ON_HOST = 1e10, 8192  # of a case of the wide set: multiplications, and n from NumPy to NumPy
SETS = ("quick", "full", "wide")
PRECISIONS = ("accurate", "strict", "reproducible")


@dataclass(frozen=True)
class Case:
    """One number to measure. `name` and `params` are asv's; lower is better. `capability`: of the GPU it pretends."""

    name: str
    params: tuple[Any, ...]
    unit: str
    version: str
    quick: bool
    capability: str = ""

    @property
    def group(self) -> str:
        """Of cases that have one mean: one benchmark in one precision."""
        words = [self.name, *(value for value in self.params if value in PRECISIONS), self._pretends]
        return " ".join(filter(None, words))

    @property
    def _pretends(self) -> str:
        return f"as {self.capability}" if self.capability else ""

    @property
    def label(self) -> str:
        params = f"({', '.join(map(str, self.params))})" if self.params else ""
        return " ".join(filter(None, [f"{self.name}{params}", self._pretends]))


def _module(name: str) -> Any:
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return importlib.import_module(f"benchmarks.{name}" if name in MODULES else f"turns.{name}")


def found(name: str) -> tuple[type, str]:
    """The class and the method of a benchmark."""
    module, kind, method = name.split(".")
    return getattr(_module(module), kind), method


def methods(modules: Iterable[str] = MODULES) -> Iterator[tuple[str, type, Any]]:
    """Each benchmark's name, class and function."""
    for module in map(_module, modules):
        for name, kind in vars(module).items():
            if inspect.isclass(kind) and kind.__module__ == module.__name__ and not name.startswith("_"):
                for method, function in inspect.getmembers(kind, inspect.isfunction):
                    if method.startswith("track_"):
                        yield f"{module.__name__.rpartition('.')[2]}.{name}.{method}", kind, function


def every(which: str = "full") -> list[Case]:
    """All cases of a set, in the order of the files; needs fastlinalg, as the benchmarks import it."""
    cases = []
    for name, kind, function in methods((*MODULES, "wide") if which == "wide" else MODULES):
        quick = {tuple(params) for params in getattr(kind, "quick", {}).get(function.__name__, ())}
        choices = kind.cases() if hasattr(kind, "cases") else itertools.product(*getattr(kind, "params", ()))
        found = [Case(name, tuple(params), function.unit, str(kind.version), params in quick) for params in choices]
        cases += [case for case in found if which == "full" or (_is_wide(case) if which == "wide" else case.quick)]
    return cases


def _is_wide(case: Case) -> bool:
    """Times by dispatch, one caller: on the GPU and from NumPy to it where there is one, else on the CPU."""
    import fastlinalg as fl

    module = case.name.split(".")[0]
    if case.unit != "seconds" or module not in (("gpu", "host") if fl.cuda.is_available() else ("cpu",)) + ANYWHERE:
        return False
    if module == "cpu":
        return math.prod(map(int, case.params[0].split("x"))) < MOST_ON_CPU
    return module != "host" or ("cuda" in case.params and case.params[-1] == 1 and int(case.params[0]) <= MOST_ON_HOST)


def between_builds(cases: Iterable[Case], pattern: str = "") -> list[Case]:
    """Those that tell two builds apart, without the ratios to peers: the builds take turns themselves, and each ratio
    would measure a peer and its call once more. Unless a pattern names them."""
    return [case for case in cases if "_ratio_to_" not in case.name or "ratio" in pattern]


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
