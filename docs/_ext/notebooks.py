"""The pages of the course as Jupyter notebooks, made of the pages themselves: `notebooks(folder)`.

Examples and commands become cells that run; code of the sources and drawings are shown. The directive's options are
those that docs/course uses.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import drawings
import figures

BLOCK = re.compile(r"^(```|:::)(.*?)\n(.*?)^\1\n", re.MULTILINE | re.DOTALL)
START = "import numpy as np\nimport fastlinalg as fl\n\nfl.kernels()"


def excerpt(page: Path, target: str, options: str) -> str:
    """What `literalinclude` shows."""
    lines = (page.parent / target).read_text().splitlines()
    wanted = {name: text.strip().strip('"') for name, text in re.findall(r"^:([\w-]+): *(.*)$", options, re.MULTILINE)}
    first = next(n for n, line in enumerate(lines) if wanted.get("start-at", "") in line)
    end = len(lines)
    if "end-before" in wanted:
        end = next(n for n, line in enumerate(lines) if n > first and wanted["end-before"] in line)
    if "end-at" in wanted:
        end = 1 + next(n for n, line in enumerate(lines) if n >= first and wanted["end-at"] in line)
    return inspect.cleandoc("\n" + "\n".join(lines[first:end]))


def cell(kind: str, text: str) -> dict[str, Any]:
    made: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.strip("\n")}
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def cell_of_block(page: Path, kind: str, body: str) -> dict[str, Any]:
    if kind.startswith("{doctest}"):
        return cell("code", "\n".join(line[4:] for line in body.splitlines() if line[:3] in (">>>", "...")))
    if kind == "sh":
        return cell("code", "%%bash\n" + body)
    if kind.startswith("{literalinclude}"):
        return cell("markdown", f"```cpp\n{excerpt(page, kind.split()[1], body)}\n```")
    if kind.startswith("{drawing}"):
        return cell("markdown", f"*Drawing:* {inspect.getdoc(drawings.DRAWINGS[kind.split()[1]])}\n\n{body}")
    return cell("markdown", f"```\n{body}```")


def notebook(page: Path) -> dict[str, Any]:
    text, cells, at = figures.expand(page.read_text()), [cell("code", START)], 0
    for found in BLOCK.finditer(text):
        if text[at : found.start()].strip():
            cells.append(cell("markdown", text[at : found.start()]))
        cells.append(cell_of_block(page, found[2], found[3]))
        at = found.end()
    cells.append(cell("markdown", text[at:]))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}


def notebooks(course: Path) -> dict[str, str]:
    """File name -> content, for every numbered page."""
    return {f"{page.stem}.ipynb": json.dumps(notebook(page), indent=1) for page in sorted(course.glob("[0-9]*.md"))}
