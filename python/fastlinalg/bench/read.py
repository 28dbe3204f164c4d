"""Bench files back into rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .data import NORMAL
from .host import MODES, HostRow, Mode
from .operands import Accuracy
from .problems import Problem
from .results import SCHEMA, Document, Row
from .timing import Timing

HEADER = ("op", "created", "commit", "version", "command", "machine", "peers")


# What it may lead to that a file says something else, or something of another kind, than ours do.
UNEXPECTED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


class NotABenchFile(ValueError):
    """The message says which file and what is wrong with it."""


def read(path: str) -> Document:
    """The document that ``fastlinalg bench --json`` wrote.

    Raises
    ------
    NotABenchFile
        The file cannot be read or holds something else.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except IsADirectoryError:
        raise NotABenchFile(
            f"{path}: a folder, and a report is made of files of fastlinalg bench --json"
            " (pages of the results of asv are made by tools/dashboard in the sources)"
        ) from None
    except OSError as error:
        raise NotABenchFile(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise NotABenchFile(f"{path}: not JSON ({error})") from None
    if not isinstance(data, dict) or "rows" not in data:
        raise NotABenchFile(f"{path}: not a file of fastlinalg bench --json")
    if data.get("schema") != SCHEMA:
        raise NotABenchFile(f"{path}: has schema {data.get('schema')}; this version reads {SCHEMA}")
    try:
        header = {name: data[name] for name in HEADER}
        rows = [_row(row) for row in data["rows"]]
        return Document(header, float(data["machine"]["peak_gflops"]), rows, data["skipped"])
    except UNEXPECTED as error:
        raise NotABenchFile(f"{path}: incomplete ({type(error).__name__}: {error})") from None


def _row(row: dict[str, Any]) -> Row:
    problem, error = _problem(row), row["error"]
    accuracy = None if error is None else Accuracy(error["ok"], error["max_units"], error["rel_f"])
    timing = Timing([float(sample) for sample in row["samples_us"]], row["method"], clocks=row["clocks"])
    common = (problem, row["kernel"], row["peer"], timing, accuracy, row["ratios"])
    if problem.op != "host":
        return Row(*common)
    mode = Mode(row["result"], row["pause_ms"] / 1e3)
    return HostRow(*common, mode=next((m for m in MODES if m == mode), mode), link_us=row["link_us"])


def _problem(row: dict[str, Any]) -> Problem:
    op, shape, trans = row["op"], row["shape"], row["trans"] or "NN"
    pads, offsets = row.get("row_pads", {"a": 0, "out": 0}), row.get("offsets", {"a": 0, "b": 0, "out": 0})
    return Problem(
        op,
        shape["m"],
        shape["n"],
        shape["k"] or 0,
        trans=op == "sgemv" and trans == "T",
        trans_a=op == "sgemm" and trans[0] == "T",
        trans_b=op == "sgemm" and trans[-1] == "T",
        batch=row.get("batch", 1),
        own=row.get("own", False),
        pads=(pads["a"], pads["out"]),
        offsets=(offsets["a"], offsets["b"], offsets["out"]),
        layout=row["layout"] if op == "host" else "C",
        data=row.get("data", NORMAL),
    )
