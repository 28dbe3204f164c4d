"""``fastlinalg kernels``: the kernel table."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import fastlinalg as fl

from .._info import OPERATIONS
from .._text import aligned


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("kernels", help="show the kernels that can run here")
    parser.add_argument("op", nargs="?", choices=OPERATIONS, metavar="OP", help=f"only of {' or '.join(OPERATIONS)}")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="only those of this kind of device")
    parser.add_argument("--all", action="store_true", help="those that cannot run here too")
    parser.set_defaults(run=run)


def kernel_table(kernels: list[fl.Kernel]) -> list[str]:
    """One line per kernel."""
    rows = [(row.op, row.name, row.device, row.needs, row.runs, row.blurb) for row in kernels]
    return aligned([("OP", "KERNEL", "DEVICE", "NEEDS", "RUNS", ""), *rows])


def reasons(kernels: list[fl.Kernel]) -> list[str]:
    """One line for each reason why this machine cannot run a kernel, or runs it by name alone."""
    missing = Counter(row.reason for row in kernels if not row.available)
    by_name = Counter(row.passed_over for row in kernels if row.available and row.passed_over)
    return [f"{count} not here: {reason}" for reason, count in missing.items()] + [
        f"{count} by name alone: {reason}" for reason, count in by_name.items()
    ]


def run(args: argparse.Namespace) -> int:
    rows = [row for op in ([args.op] if args.op else OPERATIONS) for row in fl.kernels(op)]
    rows = [row for row in rows if args.device in (None, row.device)]
    shown = [row for row in rows if row.available or args.all]
    print("\n".join([*(kernel_table(shown) if shown else []), *reasons(rows)]))
    return 0
