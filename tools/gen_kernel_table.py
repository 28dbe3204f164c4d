"""Write the kernel table of docs/kernels.md from ``fastlinalg.kernels()``, and how to read the names in it.

CPU kernels are read from kernels.def: a build has those of its own architecture alone.

python tools/gen_kernel_table.py            replace the one in docs/kernels.md
python tools/gen_kernel_table.py --print    print it
python tools/gen_kernel_table.py --check    exit status 1 if docs/kernels.md is out of step
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from pathlib import Path

import fastlinalg as fl

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "kernels.md"
KERNELS = ROOT / "cpp" / "table" / "kernels.def"
BEGIN = "<!-- kernel table: written by tools/gen_kernel_table.py -->"
END = "<!-- end of the kernel table -->"
TITLES = {"sgemm": "SGEMM", "sgemv": "SGEMV", "transpose": "Transpose"}
DEVICES = {"cuda": "on the GPU", "cpu": "on the CPU"}


def kernels(op: str, device: str) -> list[tuple[str, str, str]]:
    """Name, needs and what it does of each kernel of an operation on one kind of device."""
    if device == "cuda":
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
    if not found:
        sys.exit("kernels.def does not say how to read the names of strict kernels")
    parts = (line[2:].split(None, 1) for line in found[2].splitlines())
    return [f"Names of strict kernels are `{found[1]}`:", "", *(f"- `{part}`: {means}" for part, means in parts), ""]


def table() -> str:
    """The names and all tables, between the marks."""
    lines = [BEGIN, "", *grammar()]
    for op in TITLES:
        for device in DEVICES:
            lines += section(op, device)
    return "\n".join([*lines, END])


def replaced(text: str) -> str:
    """The page with its table replaced."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{PAGE} lacks the marks {BEGIN} and {END}")
    return head + table() + tail


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--print", action="store_true", help="print the table, change nothing")
    what.add_argument("--check", action="store_true", help="fail if docs/kernels.md is out of step")
    args = parser.parse_args()
    if args.print:
        print(table())
        return 0
    old = PAGE.read_text()
    new = replaced(old)
    if not args.check:
        PAGE.write_text(new)
        return 0
    difference = list(
        difflib.unified_diff(old.splitlines(), new.splitlines(), str(PAGE), "the kernel table", lineterm="")
    )
    if difference:
        print("\n".join([*difference, "run: python tools/gen_kernel_table.py"]))
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
