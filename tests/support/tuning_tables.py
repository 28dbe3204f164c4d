"""Tables of corrections for the tests of `fastlinalg tune`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import fastlinalg as fl
from fastlinalg import _core
from fastlinalg.cli.tune import part_of, text_of
from support.rows import same_bits


def interchangeable():
    """The rows of this CPU that have the same bits."""
    fused = [row.name for row in fl.kernels("sgemm") if row.available and same_bits(row)]
    return fused or ["portable", "portable_small"]


def favour(name):
    """A table in which one row is by far the fastest."""
    return [("sgemm", row, [(1.0, 1e-3 if row == name else 1.0)]) for row in interchangeable()]


def device(**change):
    """An entry of a table for this CPU, with some fields changed."""
    return {
        "kind": "cpu",
        "name": _core.cpu_name(),
        "measured": "2026-11-21T12:00:00Z",
        "found": [{"op": "sgemm", "shapes": 40, "before": 1.1, "after": 1.02}],
        "checked": [],
        "factors": {"sgemm": {name: knots for _, name, knots in favour(interchangeable()[0])}},
    } | change


def table(**change):
    """The text of a table with one such entry."""
    return text_of([part_of(device(**change))])


def write(path: Path, content: str) -> str:
    path.write_text(content)
    return str(path)


def use(rows, kind="cpu", name=""):
    """Corrections by these rows of operation, kernel and knots, for this CPU or the GPUs of a name."""
    lines = (f"row {op} {kernel} {' '.join(f'{us}:{factor}' for us, factor in knots)}\n" for op, kernel, knots in rows)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(text_of(["".join([f"device {kind} {name or _core.cpu_name()}\n", *lines])]))
        file.flush()
        assert _core.load_tuning(file.name) == ""
