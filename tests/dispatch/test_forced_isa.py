"""The tests that leave the choice of a kernel to the library, once more with each lower instruction set.

The rows themselves are tested by name elsewhere; on a processor with AVX-512 nothing else would ask what a call does
on one without.
"""

from __future__ import annotations

import os
import re
import sys

import pytest

import fastlinalg as fl
from support.programs import completed
from support.requirements import mostly_exhaustive
from support.source_tree import ROOT, TESTS

FILES = {
    "calls": ("api/test_calls.py", "plans/test_plans.py"),
    "more": (
        "api/test_properties.py",
        "kernels/test_exact.py",
        *(f"process/test_threads.py::test_{name}" for name in (
            "products_with_any_number_of_threads", "dispatched_results_do_not_depend_on_the_thread_count",
            "calls_after_pauses", "the_setting_may_change_during_calls", "far_more_threads_than_a_call_can_use",
        )),
    ),
    "reproducible": ("reproducible/test_reproducible.py",),
}  # fmt: skip
# Of rows, or of what was recorded, which the instruction set does not change.
BY_NAME = "each_kernel or sgemm- or sgemv- or transpose- or page_says or worth_comparing"
# The first that each forbids.
LEVELS = {"baseline": ("avx2_fma", "neon"), "avx2": ("avx512f",), "avx512": ("amx_bf16",)}


@pytest.mark.parametrize("files", mostly_exhaustive(FILES))
@pytest.mark.parametrize("level", LEVELS)
def test_suite_with_a_lower_instruction_set(level, files):
    if not any(row.available and row.needs in LEVELS[level] for row in fl.kernels("sgemm")):
        pytest.skip(f"this processor has no {' or '.join(LEVELS[level])}: the other tests ran at {level} or below")
    not_its_own = ("FASTLINALG_REQUIRE", "PYTEST_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(not_its_own)}
    options = ("-q", "-x", "-p", "no:cacheprovider", "-m", "not gpu and not huge", "-k", f"not ({BY_NAME})")
    command = (sys.executable, "-m", "pytest", *options, *(TESTS / name for name in FILES[files]))
    done = completed(*command, env=environment | {"FASTLINALG_CPU": level}, cwd=ROOT, seconds=600)
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) > 5, "hardly any test ran:\n" + done.stdout[-2000:]
