"""What is remembered of a call answers calls that are like it in all that matters, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cpp_program import SEEDED, assert_noticed, assert_right, build, built_once, write_sources
from support.source_tree import ROOT

HERE = Path(__file__).parent
KEY, PROBLEM = "cpp/dispatch/call_key.h", "cpp/core/problem.h"
FAULTS = {
    "alignment": (KEY, "data) % 128", "data) % (SEEDED ? 1 : 128)", "is overlooked"),
    "no operand": (KEY, "data ? 128 + ", "data ? (SEEDED ? 0 : 128) + ", "whether there is an addend is overlooked"),
    "code": (KEY, "code(code_on(device))", "code(SEEDED ? LoadedCode{} : code_on(device))", "the code on the device"),
    "a field": (
        PROBLEM,
        "bool operator==(const TransposeArgs&) const = default;",
        "bool operator==(const TransposeArgs& x) const { return m == x.m && n == x.n && a == x.a && b == x.b && "
        "(SEEDED || (batch == x.batch && in_place == x.in_place && stored == x.stored)); }",
        "transpose: field",
    ),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """call_cache.cpp with all faults."""

    def make(folder: Path, program: Path) -> Path:
        write_sources(folder, (KEY, PROBLEM), FAULTS)
        options = (*SEEDED, f"-I{folder}", f"-I{ROOT / 'cpp'}", HERE / "call_cache.cpp")
        return build(program, ROOT / KEY, *options, seconds=200)

    return built_once(tmp_path_factory, "call_cache", make)


def test_keys_overlook_nothing(program):
    assert_right(program, 100)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault, program):
    assert_noticed(program, 100, fault, FAULTS)
