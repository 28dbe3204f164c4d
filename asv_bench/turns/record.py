"""What one run measured, as a file that another machine reads: the machine, and every sample of every build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from .cases import Case
from .rounds import Samples


@dataclass(frozen=True)
class Measured:
    """One build. `samples` has a value for each round."""

    commit: str
    python: str
    numpy: str
    samples: Mapping[Case, Samples]


def save(file: Path, machine: Mapping[str, str], found: list[Measured]) -> None:
    rows = [
        {"commit": one.commit, "python": one.python, "numpy": one.numpy}
        | {"cases": [asdict(case) | vars(samples) for case, samples in one.samples.items()]}
        for one in found
    ]
    file.write_text(json.dumps({"machine": dict(machine), "builds": rows}) + "\n")


def load(file: Path) -> tuple[dict[str, str], list[Measured]]:
    data = json.loads(file.read_text())
    return data["machine"], [
        Measured(row["commit"], row["python"], row["numpy"], dict(map(_sampled, row["cases"])))
        for row in data["builds"]
    ]


def _sampled(row: dict) -> tuple[Case, Samples]:
    case = Case(row["name"], tuple(row["params"]), row["unit"], row["version"], row["quick"])
    return case, Samples(row["values"], row["reason"], row["states"])
