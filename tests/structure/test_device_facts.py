"""What a device has is said in one place: cpp/core/device_spec.*; what splits are made for in another."""

from __future__ import annotations

import re

import pytest

from support.source_tree import ROOT, code, label, needs_source_tree

pytestmark = needs_source_tree

SAYS_IT = {"cpp/core/device_spec.h", "cpp/core/device_spec.cpp", "cpp/plan/reference_device.h"}
# Multiprocessors of an H200 and multiples of them, shared memory of a block and of a multiprocessor, peaks.
FACT = re.compile(
    r"(?<![\w.'%])(132|198|264|396|528|232448|233472|101376|22[78] \* (?:1024|KiB)|66908|4\.8e6)(?![\w.])"
)
FILES = sorted(
    path
    for folder in ("cpp", "cuda")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".h", ".hpp", ".cpp", ".cu", ".cuh", ".def") and label(path) not in SAYS_IT
)


@pytest.mark.parametrize("path", FILES, ids=label)
def test_no_other_file_says_what_a_device_has(path):
    if path.name == "measured.def":  # coefficients, which may be any number
        return
    found = FACT.search(code(path))
    assert not found, f"{label(path)}: {found and found[0]}"


def test_the_kernel_table_has_no_bare_number():
    table = code(ROOT / "cpp" / "table" / "kernels.def")
    assert re.findall(r"(?<![\w.])\d[\d.e]*(?![\w.])", table) == []
