"""What is remembered of a call answers calls that are like it in all that matters, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cpp_program import assert_noticed, assert_right, built_with_faults

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
    return built_with_faults(tmp_path_factory, HERE / "call_cache.cpp", (KEY, PROBLEM), FAULTS, seconds=200)


def test_keys_overlook_nothing(program):
    assert_right(program, 100)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault, program):
    assert_noticed(program, 100, fault, FAULTS)
