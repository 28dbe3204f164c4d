"""What calls on simulated devices say of themselves: golden values (support/golden/answers.py)."""

from __future__ import annotations

import pytest

from support.golden.answers import SIMULATED, on_simulated, stored
from support.golden.tables import differences


@pytest.mark.parametrize("device", SIMULATED)
def test_calls_say_what_they_said(library, device):
    got = on_simulated(library, device)
    changed = differences({table: stored("simulated")[table] for table in got}, got)
    assert not changed, "\n".join(["if that was meant: python -m support.golden simulated", *changed])
