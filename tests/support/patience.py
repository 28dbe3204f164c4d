"""How long a test waits for a program that it has started."""

from __future__ import annotations

import os


def patient(seconds: float) -> float:
    """`seconds`, plenty on a machine of today; FASTLINALG_TEST_PATIENCE=10 makes it ten times as much."""
    return seconds * float(os.environ.get("FASTLINALG_TEST_PATIENCE", "1"))
