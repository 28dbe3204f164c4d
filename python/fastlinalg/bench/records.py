"""How result files are written: one JSON object whose lists of records have a line for each record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DIGITS = 6  # of a number in a record: no time repeats to more than four


def write(path: Path | str, document: dict[str, Any]) -> None:
    Path(path).write_text(text(document), encoding="utf-8")


def text(document: dict[str, Any]) -> str:
    return "{" + ",\n".join(f"{json.dumps(name)}: {_value(part)}" for name, part in document.items()) + "}\n"


def _value(part: Any) -> str:
    if not (isinstance(part, list) and part and isinstance(part[0], dict | list)):
        return json.dumps(part)
    return "[\n" + ",\n".join(json.dumps(_short(record), separators=(",", ":")) for record in part) + "\n]"


def _short(part: Any) -> Any:
    if isinstance(part, float):
        return float(f"{part:.{DIGITS}g}")
    if isinstance(part, dict):
        return {name: _short(value) for name, value in part.items()}
    return [_short(value) for value in part] if isinstance(part, list) else part
