"""What calls on simulated devices say: golden values (support/golden/answers.py). And which kernels answer them."""

from __future__ import annotations

import pytest

from support.golden.answers import SIMULATED, on_simulated, stored
from support.golden.tables import differences
from support.simulation.library import run


@pytest.mark.parametrize("device", SIMULATED)
def test_calls_say_what_they_said(library, device):
    got = on_simulated(library, device)
    changed = differences({table: stored("simulated")[table] for table in got}, got)
    assert not changed, "\n".join(["if that was meant: python -m support.golden simulated", *changed])


CHOSEN = """
import numpy as np, fastlinalg as fl
from support.golden.calls import PRECISIONS, PRODUCTS, calls
from support.simulation.choices import chosen

def put(batch, *shape):
    return fl.DeviceArray.from_numpy(np.zeros((batch, *shape) if batch > 1 else shape, np.float32))

count = 0
for kind in PRODUCTS:
    for precision in PRECISIONS:
        asked = [call[:6] + ([0] * 3, [0] * 3, precision) for call in calls("sgemm", kind, 24, precision)]
        asked = [call for call in asked if (call[0] + call[1]) * call[2] * call[3] < 5e6 > call[0] * call[1] * call[3]]
        if precision != "reproducible":
            asked = [call for call in asked if 1 not in call[:2]]  # those are handed to SGEMV
        for call, want in zip(asked, chosen("sgemm", asked, precision, fl.devices()[0])):
            m, n, k, batch, trans_a, trans_b = call[:6]
            a, b = put(batch, *((k, m) if trans_a else (m, k))), put(batch, *((n, k) if trans_b else (k, n)))
            with fl.Matmul(a, b, trans_a=trans_a, trans_b=trans_b, precision=precision) as plan:
                plan.plan()
                assert plan.kernel == want, (kind, call, plan.kernel, want)
                count += 1
print(count)
"""


@pytest.mark.parametrize("device", ["9.0", "8.0", "7.5", "9.0 as 8.0"])
def test_dispatch_chooses_by_the_parts_of_its_rule(library, device):
    assert int(run(library, ["-c", CHOSEN], FASTLINALG_TUNE="off", **SIMULATED[device])) > 300
