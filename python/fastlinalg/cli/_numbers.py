"""Numbers on the command line. Each is a type for argparse."""

from __future__ import annotations

import argparse

from .. import _core

LARGEST = 2**31 - 1  # what a C int holds


def positive(text: str) -> int:
    """A count."""
    value = int(text)
    if not 1 <= value <= LARGEST:
        raise argparse.ArgumentTypeError(f"must be at least 1 and at most {LARGEST}, got {value}")
    return value


def threads(text: str) -> int:
    """A number of CPU threads."""
    value = int(text)
    if not 1 <= value <= _core.most_threads:
        raise argparse.ArgumentTypeError(f"must be at least 1 and at most {_core.most_threads}, got {value}")
    return value


def seed(text: str) -> int:
    """Of NumPy's random numbers."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, got {value}")
    return value


def seconds(text: str) -> float:
    """A limit of time."""
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be more than 0, got {text}")
    return value


def milliseconds(text: str) -> float:
    """A pause."""
    value = float(text)
    if not 0 <= value <= 10_000:
        raise argparse.ArgumentTypeError(f"must be between 0 and 10000, got {text}")
    return value
