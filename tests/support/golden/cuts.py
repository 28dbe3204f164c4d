"""How calls on host operands are cut up: how many parts, what they load, and a hash of all of it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from fastlinalg import _core

from .tables import Table

MiB = 2**20
KERNELS = ("strict_128x256", "fp16x2")  # at whose costs
SIZES = (
    (1, 1, 1), (700, 700, 700), (3000, 1000, 2000), (1, 300_000, 300), (300_000, 1, 300), (129, 131, 60_001),
    (2049, 2047, 511), (2048, 2048, 2048), (5000, 5000, 30), (300, 300, 50_000), (200_000, 300, 40), (40, 200_000, 300),
    (4096, 8192, 0), (8192, 8192, 8192), (20_000, 3000, 1000), (32_768, 32_768, 1024),
)  # fmt: skip
BATCHES = ((3, 5, 7, 1000), (300, 200, 100, 70), (2500, 2300, 2600, 3))
MATRICES = ((5000, 3000, 1), (3, 2_000_000, 1), (2_000_000, 3, 1), (20_000, 20_000, 1), (300, 200, 100), (9, 9, 90_000))
SYMMETRIC = tuple((n, k) for n in (100, 700, 1500, 2049, 3000, 4096, 6000, 8192) for k in (30, 300, 1000, 4096, 10_000))
OPTIONS: dict[str, dict[str, Any]] = {"plain": {}, "C too": {"beta": 0.5}}
SHARED: dict[str, dict[str, Any]] = {"one A": {"one_a": True}, "one B": {"one_b": True}}  # by all problems of a batch
CASES = (
    *((name, options, (*SIZES, *BATCHES)) for name, options in OPTIONS.items()),
    *((name, options, BATCHES) for name, options in SHARED.items()),
)


def digest(plan: Any) -> str:
    return hashlib.sha256(json.dumps(plan).encode()).hexdigest()[:8]


def elements(block) -> int:
    _, problems, _, rows, _, cols = block
    return problems * rows * cols


def panels(plan) -> list:
    """Loads, steps, MiB that are loaded."""
    loads, steps = plan
    return [len(loads), len(steps), round(4 * sum(elements(load[1]) for load in loads) / MiB, 2), digest(plan)]


def tiles(plan) -> list:
    """Tiles, their memory in KiB, loads of A and of B."""
    shape, found = plan
    loads = [sum(tile["load"][operand] for tile in found) for operand in (0, 1)]
    return [len(found), shape[0] >> 10, *loads, digest([shape, [sorted(tile.items()) for tile in found]])]


def named(size) -> str:
    return "x".join(map(str, size))


def volume(m: int, n: int, k: int, batch: int = 1) -> int:
    """Where a tile of so many bytes has too small a part of it, there would be many thousands."""
    return m * n * max(k, 1) * batch


def panel_tables() -> dict[str, Table]:
    products = {
        f"{kernel}, {name}": {
            named(size): panels(_core.testing.panel_plan(*size, kernel=kernel, **options)) for size in sizes
        }
        for kernel in KERNELS
        for name, options, sizes in CASES
    }
    symmetric = {
        kernel: {
            f"{n}x{k}": panels(_core.testing.panel_plan(n, n, k, kernel=kernel, symmetric=True)) for n, k in SYMMETRIC
        }
        for kernel in KERNELS
    }
    return {"panels": products, "symmetric panels": symmetric}


def share_table() -> Table:
    """Steps of each device."""
    return {
        f"{devices} devices, {'passed on' if passes_on else 'loaded by each'}, {name}": {
            named(size): [*(len(steps) for _, steps in shares), digest(shares)]
            for size in sizes
            for shares in [_core.testing.device_shares(*(*size, 1)[:4], devices, passes_on, kernel="fp16x2", **options)]
        }
        for devices in (1, 2, 3, 8)
        for passes_on in (True, False)
        for name, options, sizes in CASES
        if passes_on or name == "plain"
    }


def tile_tables() -> dict[str, Table]:
    products = {
        f"{mib} MiB, {kernel}, {name}": {
            named(size): tiles(_core.testing.sgemm_tiles(*(*size, 1)[:4], mib * MiB, kernel=kernel, **options))
            for size in sizes
            if volume(*size) < 4096 * mib * MiB
        }
        for mib in (1, 3, 16, 200, 2048)
        for kernel in KERNELS
        for name, options, sizes in CASES
    }
    vectors, transposes = (
        {f"{mib} MiB": {named(size): tiles(plan(*size, mib * MiB)) for size in MATRICES} for mib in (1, 4, 100)}
        for plan in (_core.testing.sgemv_tiles, _core.testing.transpose_tiles)
    )
    return {"tiles of products": products, "tiles of sgemv": vectors, "tiles of transposes": transposes}


def cuts() -> dict[str, Table]:
    return panel_tables() | {"shares of devices": share_table()} | tile_tables()
