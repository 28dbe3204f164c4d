"""What all commands have in common: the parser, and how errors are said."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from .._text import nearest, unknown


class Parser(argparse.ArgumentParser):
    """No abbreviated options, errors of two lines, and what comes nearest to a wrong name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, unknown("choice", str(value), map(str, action.choices)))

    def parse_known_args(self, *given: Any, **options: Any) -> tuple[Any, list[str]]:
        found, left = super().parse_known_args(*given, **options)
        if left:  # said here: a command above does not know the options of this one
            known = [name for name in self._option_string_actions if name.startswith("--")]
            self.error(f"unrecognized arguments: {' '.join(left)}{nearest(left[0].partition('=')[0], known)}")
        return found, left

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n'{self.prog} --help' shows what there is\n")


def error(command: str, message: str, status: int = 2) -> int:
    """Say on standard error what is wrong. Returns the exit status."""
    print(f"fastlinalg {command}: error: {message}", file=sys.stderr)
    return status


def names(text: str) -> list[str]:
    """A list of names, as a type for argparse."""
    found = [name for name in text.split(",") if name]
    if not found:
        raise argparse.ArgumentTypeError(f"must name something, got {text!r}")
    return found


def file_name(text: str) -> str:
    """A path, as a type for argparse. An empty one is a variable of the shell that is not set."""
    if not text:
        raise argparse.ArgumentTypeError("must name a file, got ''")
    return text
