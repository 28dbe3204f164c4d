"""Files of golden values: tables with a line for each row, so that a kernel that comes or goes is a line of each.

A file of ``tests/golden`` is ``{table: {"calls": [...], row: [a value for each call], ...}, ...}``; in memory a table
is ``{row: {call: value}}``. A call that a row has no value for is null in the file.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

ROUNDING = 1e-7  # of estimates: compilers order their arithmetic differently

FOLDER = Path(__file__).parents[2] / "golden"

Table = dict[str, dict[str, Any]]  # row -> call -> value


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.json"


def read(name: str) -> dict[str, Table]:
    stored = json.loads(path_of(name).read_text())
    return {table: named_values(rows.pop("calls"), rows) for table, rows in stored.items()}


def named_values(calls: list[str], rows: dict[str, list]) -> Table:
    return {
        row: {call: value for call, value in zip(calls, values, strict=True) if value is not None}
        for row, values in rows.items()
    }


def write(name: str, tables: dict[str, Table]) -> None:
    blocks = (f"{json.dumps(table)}: {{\n{lines_of(rows)}\n}}" for table, rows in tables.items())
    path_of(name).write_text("{\n" + ",\n".join(blocks) + "\n}\n")


def lines_of(rows: Table) -> str:
    calls = sorted({call for values in rows.values() for call in values})
    stored = {"calls": calls} | {row: [values.get(call) for call in calls] for row, values in sorted(rows.items())}
    return ",\n".join(f"{json.dumps(row)}: {json.dumps(line, separators=(',', ':'))}" for row, line in stored.items())


def differences(want: dict[str, Table], got: dict[str, Table]) -> list[str]:
    """In words, a line for each row that is new, gone or has other values: of how many calls, the largest change."""
    gone, new = ([table for table in x if table not in y] for x, y in ((want, got), (got, want)))
    return [
        *(f"{table} is gone, {len(want[table])} rows" for table in gone),
        *(f"{table} is new, {len(got[table])} rows" for table in new),
        *(f"{table}: {line}" for table in want if table in got for line in table_differences(want[table], got[table])),
    ]


def table_differences(want: Table, got: Table) -> list[str]:
    gone = [f"{row} is gone" for row in want.keys() - got.keys()]
    new = [f"{row} is new" for row in got.keys() - want.keys()]
    changed = [
        row_difference(row, want[row], got[row]) for row in want.keys() & got.keys() if change(want[row], got[row])
    ]
    return sorted(gone) + sorted(new) + sorted(changed)


def row_difference(row: str, want: dict[str, Any], got: dict[str, Any]) -> str:
    calls = [call for call in dict.fromkeys([*want, *got]) if change(want.get(call), got.get(call))]
    worst = max(calls, key=lambda call: change(want.get(call), got.get(call)))
    return (
        f"{row} differs in {len(calls)} of {len(want.keys() | got.keys())} calls, most in {worst}: "
        f"{want.get(worst)} -> {got.get(worst)}"
    )


def change(want: Any, got: Any) -> float:
    """How far apart two values are: relative for numbers, infinite for what has no size."""
    if isinstance(want, dict) and isinstance(got, dict):
        return max((change(want.get(call), got.get(call)) for call in want.keys() | got.keys()), default=0.0)
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return max(map(change, want, got), default=0.0)
    if want == got:
        return 0.0
    if isinstance(want, int | float) and isinstance(got, int | float):
        relative = abs(got - want) / max(abs(want), abs(got))
        return relative if isinstance(want, int) or relative > ROUNDING else 0.0
    return math.inf
