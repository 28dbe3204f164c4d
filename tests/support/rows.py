"""The kernel table as pytest parameters: a new row is tested by every test that takes a row."""

from __future__ import annotations

import functools
import re

import pytest

import fastlinalg as fl
from fastlinalg import _core

OPERATIONS = _core.operations()


# What kernels() does not say of a row yet, as lists and rules on names (kernels.def): all of them are here.
def strict_tiles(suffix: str) -> tuple[str, ...]:
    """Strict rows with a tile whose names end so."""
    return tuple(row.name for row in fl.kernels("sgemm") if re.fullmatch(rf"strict_\d+x\d+{suffix}", row.name))


# Every warp of a cluster has a slice of k, which an accurate product adds up in runs.
CLUSTER_SPLIT_K = strict_tiles(r"k8c\d")
# As many blocks as the device takes at a time go from tile to tile, and add in ascending k.
PERSISTENT = (*strict_tiles("[pr]?"), "persistent", "tile_order", "stream_k")
# They are for a short k. Their sums over a long one are longer than those of rows whose groups share each range.
WITHOUT_GROUPS = frozenset(strict_tiles("m1"))


def _step(name: str) -> int:
    """Along k, of all blocks that share a tile."""
    blocks = re.search(r"c(\d)$", name)
    return (128 if name in CLUSTER_SPLIT_K else 32) * (int(blocks[1]) if blocks else 1)


# GPU rows with a shorter twin for whole tiles: the tile, and the step along k.
FULL_TILES = {
    row.name: (*map(int, row.traits.tile.split("x")), _step(row.name))
    for row in fl.kernels("sgemm")
    if row.strict and row.traits.tma and (not row.traits.reproducible or row.name == "reproducible_128x256")
}
TALL_SKINNY = ("strict_narrow", "strict_tall_skinny")
# Tensor cores with k cut over the grid where tiles are few, and with a plain kernel in the same launch.
ACCURATE_SPLIT_K = ("fp16x2", "bf16x6", "fp16x2_mma")

# CPU rows that compute in software what others have instructions for, and take a hundred times as long.
SLOW = ("reference", "portable_fused", "amx_bf16x6_model")


def same_bits(row) -> bool:
    """Whether the row is one of those of this CPU that give the same bits."""
    return re.fullmatch(r"(avx\w+|neon)_(\d+x\d+|small|rows)", row.name) is not None


def one_dot_product_each(row) -> bool:
    """Whether an element of the product is one long sum."""
    return row.name == "reference"


# ---------------------------------------------------------------- parameters
def rows(op: str, device: str | None = None, strict: bool | None = None, names=None):
    """One parameter for each row of an operation, GPU rows with the mark ``gpu``."""
    unknown = set(names or ()) - {row.name for row in fl.kernels(op)}
    assert not unknown, f"the table has no rows {sorted(unknown)}: a list of names is out of date"
    return [
        pytest.param(row, id=f"{op}-{row.name}", marks=[pytest.mark.gpu] if row.device == "cuda" else [])
        for row in fl.kernels(op)
        if device in (None, row.device) and strict in (None, row.strict) and (names is None or row.name in names)
    ]


def best_precision(row) -> str:
    return "strict" if row.strict else "accurate"


def refused(row, error: ValueError) -> bool:
    """Whether the error is the row's own statement that it cannot take the operands."""
    return f"kernel '{row.name}' needs" in str(error)


def taken(row, call, must: bool = False):
    """Return ``call()``, or None where the row refuses the operands and may."""
    try:
        return call()
    except ValueError as error:
        if must or not refused(row, error):
            raise
        return None


def attempt(row, call, must: bool):
    """The same of operands in host memory, which GPU rows never refuse: they get padded copies."""
    return taken(row, call, must or row.device == "cuda")


# ---------------------------------------------------------------- what the rules say
def accumulation_depth(row, m, n, k, precision="strict"):
    """The most additions that one product of aligned operands goes through; None where the row does not say."""
    return _core.testing.sgemm_rules(m, n, k, precision)[1][row.name][1]


def adds_in_the_same_order(row, *shapes) -> bool:
    """Whether the row splits k alike in products of these shapes: CPU rows always do."""
    depths = {accumulation_depth(row, m, -(-n // 4) * 4, -(-k // 4) * 4) for m, n, k in shapes if row.device == "cuda"}
    return None not in depths and len(depths) <= 1


@functools.cache
def split_k() -> frozenset[str]:
    """Strict GPU rows with a fixed tile that split k over the grid, into as many ranges as fill the device."""
    rows = fl.kernels("sgemm")
    return frozenset(row.name for row in rows if row.strict and row.traits.split_k and row.traits.tile)
