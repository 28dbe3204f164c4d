"""The barriers of the strict kernels whose warps have roles, in random orders of what may happen next.

On a GPU a fault there shows once in thousands of launches, as a hang, a launch failure or a wrong result: boxes that
TMA fetches arrive in another order, by microseconds, where the host's copies share the memory.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.cpp_program import build, built_once, run
from support.source_tree import ROOT

TILES = ROOT / "cpp" / "plan" / "strict" / "pipelined_tiles.h"
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    names = re.findall(r"inline constexpr PipelinedTile (\w+)", TILES.read_text())
    tiles = "-DPIPELINED_TILES=" + ",".join(f"fl::{name}" for name in names)
    options = ("-O1", tiles, "-I", ROOT / "cpp", HERE / "pipeline_rounds.cpp")
    return built_once(tmp_path_factory, "rounds", lambda _, program: build(program, TILES, *options, seconds=60))


def verdicts(program: Path, *fault: str) -> dict[str, str]:
    done = run(program, 60, *fault)
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ") for line in done.stdout.splitlines())


def test_every_group_reads_its_own_step(program):
    said = verdicts(program)
    assert len(said) > 15
    assert set(said.values()) == {"right"}, said


def test_a_group_that_does_not_ask_reads_another_step(program):
    """The fault that was found in the variants whose boxes arrive in any order, and in none whose copies do not."""
    said = verdicts(program, "never ask")
    wrong = {variant for variant, verdict in said.items() if verdict != "right"}
    assert wrong == {variant for variant in said if "boxes" in variant and not same_stages(variant)}


@pytest.mark.parametrize("fault", ["no turns", "first turns"])
def test_groups_that_do_not_wait_for_their_turn_are_found(fault, program):
    """Where each group has blocks of k of its own, whose sums are added in ascending order."""
    said = verdicts(program, fault)
    assert {variant for variant, verdict in said.items() if verdict != "right"} == {
        variant for variant in said if "turns" in variant
    }
    assert sum("turns" in variant for variant in said) >= 5


def same_stages(variant: str) -> bool:
    groups, stages = (int(re.search(pattern, variant)[1]) for pattern in (r"k(\d+)", r"(\d+) stages"))
    return stages % groups == 0
