"""``fastlinalg explain``: which kernel a call takes, and why."""

from __future__ import annotations

import argparse
from typing import Any

import fastlinalg as fl

from ._parser import error
from .bench import PRECISIONS


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("explain", help="say which kernel a call takes, and why; nothing is computed")
    parser.add_argument("a", type=shape, metavar="A", help="shape of the first operand, as 1000x500, or 8x1000x500")
    parser.add_argument("b", type=shape, nargs="?", metavar="B", help="of the second; without it A is transposed")
    parser.add_argument("--trans-a", action="store_true", help="A is transposed")
    parser.add_argument("--trans-b", action="store_true", help="B is transposed")
    parser.add_argument("--kernel", metavar="NAME", help="as if this one were asked for")
    parser.add_argument("--precision", choices=PRECISIONS, default=PRECISIONS[0], help=f"default: {PRECISIONS[0]}")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, cuda:all; default: auto")
    parser.set_defaults(run=run)


def shape(text: str) -> tuple[int, ...]:
    """Sizes with an x between them, as a type for argparse."""
    try:
        return tuple(int(size) for size in text.split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a shape as 1000x500, got {text!r}") from None


def run(args: argparse.Namespace) -> int:
    options = {name: getattr(args, name) for name in ("trans_a", "trans_b", "kernel", "precision", "device")}
    try:
        print(fl.explain(args.a, args.b, **options))
    except ValueError as wrong:
        return error("explain", str(wrong))
    except fl.CudaError as missing:
        return error("explain", str(missing), 1)
    return 0
