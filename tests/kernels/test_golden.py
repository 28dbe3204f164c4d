"""No result changes unseen: golden values of results' bits (support/golden)."""

from __future__ import annotations

import pytest

import fastlinalg as fl
from support.golden.bits import bits_of, kernels, listed_rows, stored_bits
from support.golden.tables import differences, read
from support.requirements import missing, mostly_exhaustive
from support.rows import SLOW
from support.source_tree import needs_source_tree


@needs_source_tree
@pytest.mark.parametrize("file", ["bits-cpu", "bits-h200"])
def test_rows_that_have_gone_have_no_bits(file):
    assert {(table.split()[0], row) for table, rows in read(file).items() for row in rows} <= listed_rows()


@pytest.mark.parametrize("file", ["bits-cpu", "bits-h200"])
def test_accurate_bits_are_other_bits(file):
    """Those of the strict ones stand there alone, as bits_of() has them."""
    strict, accurate = (read(file)[f"sgemm {precision}"] for precision in ("strict", "accurate"))
    assert [row for row, bits in accurate.items() if bits == strict.get(row)] == []


def check(kernel, file: str) -> None:
    wanted = stored_bits(kernel, read(file))
    assert wanted, f"not in {file}.json: python -m support.golden {kernel.device} {kernel.name}"
    assert differences({"bits": wanted}, {"bits": bits_of(kernel)}) == []


@pytest.mark.parametrize(
    "row",
    mostly_exhaustive(kernels("cpu"), *(k for k in kernels("cpu") if k.op != "sgemm" or k.name not in SLOW)),
    ids=lambda kernel: f"{kernel.op}-{kernel.name}",
)
def test_bits_on_the_cpu(row):
    check(row, "bits-cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("row", kernels("cuda"), ids=lambda kernel: f"{kernel.op}-{kernel.name}")
def test_bits_on_hopper(row):
    """Some kernels fill the device that is there, so the file is for one number of multiprocessors."""
    device = fl.devices()[0]
    if (device["compute_capability"], device["sm_count"]) != ("9.0", 132):
        missing("h200", f"the bits are those of an H100 SXM or H200, here is {device}")
    check(row, "bits-h200")
