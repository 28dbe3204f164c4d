"""Write the kernel table of docs/kernels.md from ``fastlinalg.kernels()``.

python tools/gen_kernel_table.py            replace the one in docs/kernels.md
python tools/gen_kernel_table.py --print    print it
python tools/gen_kernel_table.py --check    exit status 1 if docs/kernels.md is out of step
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

import fastlinalg as fl

PAGE = Path(__file__).parent.parent / "docs" / "kernels.md"
BEGIN = "<!-- kernel table: written by tools/gen_kernel_table.py -->"
END = "<!-- end of the kernel table -->"
TITLES = {"sgemm": "SGEMM", "sgemv": "SGEMV", "transpose": "Transpose"}
DEVICES = {"cuda": "on the GPU", "cpu": "on the CPU"}


def section(op: str, device: str) -> list[str]:
    """The table of one operation on one kind of device, empty if it has no kernels."""
    rows = [row for row in fl.kernels(op) if row.device == device]
    if not rows:
        return []
    lines = [f"### {TITLES[op]} {DEVICES[device]}", "", "| name | needs | what it does |", "|---|---|---|"]
    lines += [f"| `{row.name}` | {row.needs} | {row.blurb.replace('|', '&#124;')} |" for row in rows]
    return [*lines, ""]


def table() -> str:
    """All tables, between the marks."""
    lines = [BEGIN, ""]
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
