"""How a plan is shared out between devices: each step of one device's plan done once, on operands that are there."""

from __future__ import annotations

import pytest

from fastlinalg import _core
from support.panel_blocks import A, B, C, covered, of_problem
from support.requirements import EXHAUSTIVE

SIZES = (
    (700, 700, 700),
    (129, 4097, 1000),
    (4097, 129, 1000),
    (2049, 3001, 511),
    (300, 300, 50_000),
)
CASES = [(*shape, devices) for shape in SIZES for devices in (1, 2, 3, 8)]
CASES += [pytest.param(8192, 8192, 8192, 2, marks=EXHAUSTIVE)]
BATCHES = ((3, 5, 7, 1000), (300, 200, 100, 70), (2500, 2300, 2600, 3))


def there(shares, device, step):
    """The parts of operands that a device has when it begins a step: its own loads, and what the others passed on."""
    loads, steps = shares[device]
    own, _, received = steps[step]
    parts = [(operand, block) for operand, block, _ in loads[:own]]
    for other, (theirs, _) in enumerate(shares):
        for operand, block, passed_on in theirs[: received[other]]:
            assert other != device
            if device in passed_on:
                parts.append((operand, block))
    return parts


def check(m, n, k, batch, devices, passes_on, **options):
    _, steps = _core.testing.panel_plan(m, n, k, batch, **options)
    shares = _core.testing.device_shares(m, n, k, batch, devices, passes_on, **options)
    assert len(shares) == min(devices, len(steps)) and all(share[1] for share in shares)
    assert sorted(block for _, mine in shares for _, block, _ in mine) == sorted(block for _, block in steps)
    shared = {A: options.get("one_a", False), B: options.get("one_b", False), C: False}
    shapes = {A: (m, k), B: (k, n), C: (m, n)}
    beta = options.get("beta", 0.0) != 0.0
    for device, (_, mine) in enumerate(shares):
        for step, (_, (problem, problems, row, height, col, width), _) in enumerate(mine):
            parts = there(shares, device, step)
            needed = {A: (row, height, 0, k), B: (0, k, col, width)} | ({C: (row, height, col, width)} if beta else {})
            for operand, (top, rows, left, cols) in needed.items():
                for each in {problem, problem + problems - 1}:
                    at = 0 if shared[operand] else each
                    seen = covered(of_problem(parts, operand, at), *shapes[operand])[
                        top : top + rows, left : left + cols
                    ]
                    assert (seen == 1).all(), f"device {device} has operand {operand} once before step {step}"
    return shares


def fetched(shares, operand, shape, problem=0):
    parts = [(which, block) for loads, _ in shares for which, block, _ in loads]
    return covered(of_problem(parts, operand, problem), *shape)


@pytest.mark.parametrize(("m", "n", "k", "devices"), CASES)
def test_one_problem(m, n, k, devices):
    for beta in (0.0, 0.5):
        for passes_on in (True, False):
            shares = check(m, n, k, 1, devices, passes_on, beta=beta)
            if passes_on:
                for operand, shape in ((A, (m, k)), (B, (k, n))):
                    assert (fetched(shares, operand, shape) == 1).all(), f"operand {operand} crosses a link once"
            assert passes_on or not any(others for loads, _ in shares for _, _, others in loads)


@pytest.mark.parametrize("one_a, one_b", [(False, False), (True, False), (False, True)])
def test_batches(one_a, one_b):
    for m, n, k, batch in BATCHES:
        for passes_on in (True, False):
            shares = check(m, n, k, batch, 2, passes_on, one_a=one_a, one_b=one_b, beta=1.0)
            if passes_on:
                for operand, one, shape in ((A, one_a, (m, k)), (B, one_b, (k, n)), (C, False, (m, n))):
                    for problem in (0, batch - 1):
                        assert (fetched(shares, operand, shape, 0 if one else problem) == 1).all()


def test_devices_have_equal_shares():
    """Of the work, and of the links in both directions."""
    for n in (4096, 8192, 16384):
        shares = _core.testing.device_shares(n, n, n, 1, 2, kernel="fp16x2")
        volume = [sum(block[3] * block[5] for _, block, _ in steps) for _, steps in shares]
        links = [sum(block[3] * block[5] for _, block, _ in loads) for loads, _ in shares]
        assert max(volume) <= 1.1 * min(volume) and max(links) <= 1.02 * min(links), (n, volume, links)


def test_a_share_depends_on_the_call_and_the_number_of_devices_alone():
    arguments = (5000, 4000, 3000, 1, 3)
    assert _core.testing.device_shares(*arguments) == _core.testing.device_shares(*arguments)
