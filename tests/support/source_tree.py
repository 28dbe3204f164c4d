"""Where the sources are, for tests of more than an installed package."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
IS_THERE = (ROOT / "cpp" / "table" / "kernels.def").exists()
needs_source_tree = pytest.mark.skipif(not IS_THERE, reason="needs the source tree")

SOURCES = sorted(
    p
    for folder in ("cpp", "cuda")
    for p in (ROOT / folder).rglob("*")
    if p.suffix in (".h", ".hpp", ".cpp", ".cu", ".cuh")
)
# What the macros of cpp/table/kernels.def begin with, before the operation.
ROW_KINDS = "PACKED_|CUDA_|STRICT_|LADDER_|REPRODUCIBLE_|SLABS_|WARP_SLABS_"
KERNEL_FILES = [p for p in SOURCES if "kernels" in p.parts]


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def code(path: Path) -> str:
    """The text without comments and strings."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', re.sub(r"//[^\n]*", "", text))


DATA = (".png", ".npz", ".jpg", ".svg", ".json", ".csv")


def tracked(data=False):
    """The files of the work tree, of data only if wanted."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs git and a work tree")
    names = listing.stdout.splitlines()
    environments = {name.split("/")[0] for name in names if name.endswith("/pyvenv.cfg")}  # somebody's, under any name
    for name in names:
        path = ROOT / name
        if name.split("/")[0] not in environments and path.is_file() and (data or path.suffix not in DATA):
            yield path
