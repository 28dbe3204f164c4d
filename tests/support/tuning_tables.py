"""Tables of corrections for the tests of `fastlinalg tune`."""

from __future__ import annotations

import json
from pathlib import Path

import fastlinalg as fl
from fastlinalg import _core
from support.rows import same_bits


def interchangeable():
    """The rows of this CPU that have the same bits."""
    fused = [row.name for row in fl.kernels("sgemm") if row.available and same_bits(row)]
    return fused or ["portable", "portable_small"]


def favour(name):
    """A table in which one row is by far the fastest."""
    return [("sgemm", row, [(1.0, 1e-3 if row == name else 1.0)]) for row in interchangeable()]


def table(**change):
    packed = interchangeable()[0]
    device = {
        "kind": "cpu",
        "name": _core.cpu_name(),
        "measured": "2026-11-21T12:00:00Z",
        "found": [{"op": "sgemm", "shapes": 40, "before": 1.1, "after": 1.02}],
        "factors": {"sgemm": {name: [list(knot) for knot in knots] for _, name, knots in favour(packed)}},
    }
    return {"format": 1, "version": fl.__version__, "devices": [device | change.pop("device", {})]} | change


def write(path: Path, content) -> str:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)
