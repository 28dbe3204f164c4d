"""What is remembered of a call answers calls that are like it in all that matters, and no others."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.cpp_program import build, run
from support.source_tree import ROOT

HERE = Path(__file__).parent
HEADERS = ROOT / "cpp"


def verdict(folder: Path, *first: Path) -> subprocess.CompletedProcess[str]:
    """Compiles and runs call_cache.cpp, with headers of `first` in place of the library's."""
    includes = (f"-I{place}" for place in (*first, HEADERS))
    source = HERE / "call_cache.cpp"
    return run(build(folder / "call_cache", HEADERS / "dispatch", *includes, source, seconds=200), 100)


def test_keys_overlook_nothing(tmp_path):
    done = verdict(tmp_path)
    assert done.returncode == 0 and done.stdout == "all right\n", done.stdout + done.stderr


FAULTS = {
    "alignment": ("dispatch/call_key.h", "% 128 :", "% 1 :", "is overlooked"),
    "no operand": ("dispatch/call_key.h", "data ? 128 + ", "data ? ", "whether there is an addend is overlooked"),
    "code": ("dispatch/call_key.h", "code(code_on(device))", "code{}", "code on the device is overlooked"),
    "a field": (
        "core/problem.h",
        "bool operator==(const TransposeArgs&) const = default;",
        "bool operator==(const TransposeArgs& x) const { return m == x.m && n == x.n && a == x.a && b == x.b; }",
        "transpose: field",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_key_that_overlooks_something_is_noticed(fault, tmp_path):
    header, right, wrong, complaint = FAULTS[fault]
    text = (HEADERS / header).read_text()
    assert text.count(right) == 1
    for folder in ("core", "dispatch"):
        shutil.copytree(HEADERS / folder, tmp_path / folder)
    (tmp_path / header).write_text(text.replace(right, wrong))
    done = verdict(tmp_path, tmp_path)
    assert done.returncode == 1 and complaint in done.stdout, done.stdout + done.stderr
