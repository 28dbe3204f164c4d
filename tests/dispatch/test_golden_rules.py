"""No rule changes unseen: how sums and calls are cut, what kernels are expected to take.

Golden values (support/golden) of devices that are described, so the same in every build on every machine.
"""

from __future__ import annotations

import pytest

import fastlinalg as fl
from support.golden import answers
from support.golden.plans import PARTS, of_part, stored
from support.golden.tables import differences


@pytest.mark.parametrize("part", PARTS)
def test_rules_are_what_they_were(part):
    changed = differences(stored(part), of_part(part))
    assert not changed, "\n".join(["if that was meant: python -m support.golden plans", *changed])


def test_calls_say_what_they_said():
    if not any(row.name == "avx2_6x16" and row.available for row in fl.kernels("sgemm")):
        pytest.skip("the values are those of AVX2")
    changed = differences(answers.stored("cpu"), answers.on_cpu())
    assert not changed, "\n".join(["if that was meant: python -m support.golden answers", *changed])
