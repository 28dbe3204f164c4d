"""Numbers on the command line. Each is a type for argparse."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from .. import _core

LARGEST = 2**31 - 1  # what a C int holds


def _number(name: str, kind: type, least: float, most: float, wanted: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"must be {wanted}, got {text}")
        return value

    read.__name__ = name  # argparse says "invalid NAME value" of what is no number
    return read


positive = _number("positive", int, 1, LARGEST, f"at least 1 and at most {LARGEST}")
threads = _number("threads", int, 1, _core.most_threads, f"at least 1 and at most {_core.most_threads}")
seed = _number("seed", int, 0, math.inf, "at least 0")  # of NumPy's random numbers
seconds = _number("seconds", float, math.ulp(0), math.inf, "more than 0")
