"""Numbers on the command line. Each is a type for argparse."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from .. import _core

LARGEST = 2**31 - 1  # what a C int holds


def _number(kind: type, least: float, most: float, wanted: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"must be {wanted}, got {text}")
        return value

    return read


positive = _number(int, 1, LARGEST, f"a whole number of at least 1 and at most {LARGEST}")
threads = _number(int, 1, _core.most_threads, f"a whole number of at least 1 and at most {_core.most_threads}")
seed = _number(int, 0, math.inf, "a whole number of at least 0")  # of NumPy's random numbers
seconds = _number(float, math.ulp(0), math.inf, "a number of more than 0")
