"""No rule changes unseen: how sums and calls are cut, what kernels are expected to take, which is chosen.

Golden values (support/golden) of devices that are described, so the same in every build on every machine.
"""

from __future__ import annotations

import pytest

from support.golden.plans import PARTS, of_part, stored
from support.golden.tables import differences


@pytest.mark.parametrize("part", PARTS)
def test_rules_are_what_they_were(part):
    changed = differences(stored(part), of_part(part))
    assert not changed, "\n".join(["if that was meant: python -m support.golden plans", *changed])
