"""The command line: ``python -m fastlinalg``, or ``fastlinalg``.

Each sub-command is a module with ``add_parser(subparsers)``, which sets ``run``: a function that takes the
parsed arguments and returns the exit status. What a sub-command needs is imported when it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import fastlinalg

from . import bench, explain, info, kernels, report, selftest, tune
from ._parser import Parser


def build_parser() -> Parser:
    """The parser of all sub-commands."""
    parser = Parser(
        prog="fastlinalg",
        description="float32 matrix products, matrix-vector products and transposes on CPU and GPU",
    )
    parser.add_argument("--version", action="version", version=f"fastlinalg {fastlinalg.__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (info, kernels, explain, selftest, bench, tune, report):
        module.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; those of the process by default.

    Returns
    -------
    int
        The exit status: 0, or 1 if something is wrong, or 2 for a wrong use.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started us: nobody reads it, and what we write files for goes on
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    args = build_parser().parse_args(argv)
    args.argv = list(sys.argv[1:] if argv is None else argv)
    try:
        status: int = args.run(args)
        sys.stdout.flush()  # here, where a reader that has gone is no surprise, and not while the interpreter ends
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, `| head` for example
        _drop_output()
        return 1
    except OSError as error:  # a full disk behind our output; files have messages of their own
        _drop_output()
        print(f"fastlinalg {args.command}: error: {error.strerror or error}", file=sys.stderr)
        return 1
    return status


def _drop_output() -> None:
    """Lead what is still in the buffer, and would fail again while the interpreter ends, to nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
