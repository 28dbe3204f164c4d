"""Each call of the CUDA runtime that the host layer makes fails in turn, on each path, and each request of the library
for memory of the host (failing_calls.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.requirements import mostly_exhaustive
from support.simulation.library import run

PROGRAM = Path(__file__).parent / "failing_calls.py"
# Paths, and which calls fail in the first tier: every so many-th. The second has five times as many of all paths.
PATHS = {
    "small calls": 31, "one copy": 7, "panels": 71, "panels of threads": 97, "tiles": 71, "other operations": 211,
    "device arrays": 37, "streams": 97, "captures": 31, "repeated calls": 41, "plans": 211, "lists": 127,
    "kept splits": 31, "measuring": 211, "two devices": 211, "tiles of two devices": 127, "in parts": 61,
}  # fmt: skip
OF_TWO = ("two devices", "tiles of two devices", "in parts")


def fail(library, what, path, every):
    run(library, [str(PROGRAM), what, str(every), path], FASTLINALG_SIMULATED_DEVICES="2" if path in OF_TWO else "1")


@pytest.mark.parametrize(
    "path", ["one copy", "panels", "device arrays", "streams", "repeated calls", "lists", "in parts"]
)
def test_some_calls_fail(library, path):
    fail(library, "calls", path, PATHS[path])


@pytest.mark.parametrize("path", mostly_exhaustive(PATHS, "repeated calls"))
def test_requests_for_memory_of_the_host_fail(library, path):
    fail(library, "requests", path, 1 + PATHS[path] // 15)


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", PATHS)
def test_many_calls_fail(library, path):
    fail(library, "calls", path, 1 + PATHS[path] // 5)
