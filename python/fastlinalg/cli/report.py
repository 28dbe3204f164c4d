"""``fastlinalg report``: one HTML page from files of ``fastlinalg bench --json``."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

from ._parser import error, file_name


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("report", help="one HTML page from files of bench --json")
    parser.add_argument("files", nargs="+", metavar="FILE.json", help="written by fastlinalg bench --json")
    parser.add_argument(
        "-o", "--output", type=file_name, default="report.html", metavar="FILE", help="default: report.html"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ..bench.read import UNEXPECTED, NotABenchFile, read

    try:
        documents = [(Path(path).stem, read(path)) for path in args.files]
    except NotABenchFile as wrong:
        return error("report", str(wrong))
    if importlib.util.find_spec("matplotlib") is None:
        return error("report", "the plots need matplotlib; install it with: pip install matplotlib", 1)
    from ..bench.html import page

    try:
        Path(args.output).write_bytes(page(documents).encode())
    except OSError as wrong:
        return error("report", f"cannot write {args.output}: {wrong.strerror}")
    except UNEXPECTED as wrong:  # a file has all the parts, and in one of them something else than we write
        found = f"{type(wrong).__name__}: {wrong}"
        return error("report", f"cannot make a page of {', '.join(args.files)} ({found})")
    print(Path(args.output).resolve())
    return 0
