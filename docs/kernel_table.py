"""The tables of docs/kernels.md: every kernel by operation and device, and how to read the names of strict ones.

CPU kernels are read from kernels.def, as a build has those of its own architecture alone; the others from the package.
"""

from __future__ import annotations

import re
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[1] / "cpp" / "table" / "kernels.def"
TITLES = {"sgemm": "SGEMM", "sgemv": "SGEMV", "transpose": "Transpose"}
DEVICES = {"cuda": "on the GPU", "cpu": "on the CPU"}


def kernels(op: str, device: str) -> list[tuple[str, str, str]]:
    """Name, needs and what it does of each kernel of an operation on one kind of device."""
    if device == "cuda":
        import fastlinalg as fl

        return [(row.name, row.needs, row.blurb) for row in fl.kernels(op) if row.device == device]
    return re.findall(rf'^(?:PACKED_)?{op.upper()}\((\w+), *(\w+), .*"(.+)"\)$', KERNELS.read_text(), re.MULTILINE)


def section(op: str, device: str) -> list[str]:
    """The table of one operation on one kind of device, empty if it has no kernels."""
    rows = kernels(op, device)
    if not rows:
        return []
    lines = [f"### {TITLES[op]} {DEVICES[device]}", "", "| name | needs | what it does |", "|---|---|---|"]
    lines += [f"| `{name}` | {needs} | {blurb.replace('|', '&#124;')} |" for name, needs, blurb in rows]
    return [*lines, ""]


def grammar() -> list[str]:
    """What the parts of a strict kernel's name mean: a comment of kernels.def."""
    found = re.search(r"^// Names of strict kernels: (.+)\n((?://   .+\n)+)", KERNELS.read_text(), re.MULTILINE)
    assert found, "kernels.def does not say how to read the names of strict kernels"
    parts = (line[2:].split(None, 1) for line in found[2].splitlines())
    return [f"Names of strict kernels are `{found[1]}`:", "", *(f"- `{part}`: {means}" for part, means in parts), ""]


def table() -> str:
    return "\n".join(grammar() + [line for op in TITLES for device in DEVICES for line in section(op, device)])
