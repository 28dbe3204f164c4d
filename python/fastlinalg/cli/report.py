"""``fastlinalg report``: one HTML page from files of ``fastlinalg bench --json``."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("report", help="one HTML page from files of bench --json")
    parser.add_argument("files", nargs="+", metavar="FILE.json", help="written by fastlinalg bench --json")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="default: report.html")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if importlib.util.find_spec("matplotlib") is None:
        print(
            "fastlinalg report: error: needs matplotlib; install with: pip install fastlinalg[bench]", file=sys.stderr
        )
        return 1
    from ..bench.html import page
    from ..bench.read import UNEXPECTED, NotABenchFile, read

    try:
        documents = [(Path(path).stem, read(path)) for path in args.files]
        text = page(documents).encode()
        Path(args.output).write_bytes(text)
    except NotABenchFile as error:
        print(f"fastlinalg report: error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"fastlinalg report: error: cannot write {args.output}: {error.strerror}", file=sys.stderr)
        return 2
    except UNEXPECTED as error:  # a file has all the parts, and in one of them something else than we write
        found = f"{type(error).__name__}: {error}"
        print(f"fastlinalg report: error: cannot make a page of {', '.join(args.files)} ({found})", file=sys.stderr)
        return 2
    print(args.output)
    return 0
