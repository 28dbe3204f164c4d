"""The barriers of the strict kernels whose warps have roles, in random orders of what may happen next.

On a GPU a fault there shows once in thousands of launches, as a hang, a launch failure or a wrong result: boxes that
TMA fetches arrive in another order, by microseconds, where the host's copies share the memory.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.cpp_program import build, run
from support.source_tree import ROOT

TILES = ROOT / "cpp" / "plan" / "strict" / "pipelined_tiles.h"
HERE = Path(__file__).parent


def verdicts(folder: Path, *options: str) -> dict[str, str]:
    names = re.findall(r"inline constexpr PipelinedTile (\w+)", TILES.read_text())
    tiles = "-DPIPELINED_TILES=" + ",".join(f"fl::{name}" for name in names)
    program = build(
        folder / "rounds", TILES, "-O1", tiles, *options, "-I", ROOT / "cpp", HERE / "pipeline_rounds.cpp", seconds=60
    )
    done = run(program, seconds=60)
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ") for line in done.stdout.splitlines())


def test_every_group_reads_its_own_step(tmp_path):
    said = verdicts(tmp_path)
    assert len(said) > 15
    assert set(said.values()) == {"right"}, said


def test_a_group_that_does_not_ask_reads_another_step(tmp_path):
    """The fault that was found in the variants whose boxes arrive in any order, and in none whose copies do not."""
    said = verdicts(tmp_path, "-DNEVER_ASK")
    wrong = {variant for variant, verdict in said.items() if verdict != "right"}
    assert wrong == {variant for variant in said if "boxes" in variant and not same_stages(variant)}


@pytest.mark.parametrize("fault", ["NO_TURNS", "FIRST_TURNS"])
def test_groups_that_do_not_wait_for_their_turn_are_found(fault, tmp_path):
    """Where each group has blocks of k of its own, whose sums are added in ascending order."""
    said = verdicts(tmp_path, f"-D{fault}")
    assert {variant for variant, verdict in said.items() if verdict != "right"} == {
        variant for variant in said if "turns" in variant
    }
    assert sum("turns" in variant for variant in said) >= 5


def same_stages(variant: str) -> bool:
    groups, stages = (int(re.search(pattern, variant)[1]) for pattern in (r"k(\d+)", r"(\d+) stages"))
    return stages % groups == 0
