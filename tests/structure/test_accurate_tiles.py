"""Tiles of the products on tensor cores that break a rule do not compile, and the compiler says which rule."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from support.source_tree import ROOT, needs_source_tree

pytestmark = needs_source_tree

# What is changed in a tile, and what the compiler says then.
BROKEN = {
    ("fp16x2_256x128", "tile.BM = 192"): "as many waves of 64 rows",
    ("fp16x2_256x128", "tile.stages = 3"): "fit the shared memory of a block",
    ("fp16x2_128x64", "tile.stages = 5"): "before it knows the status",
    ("fp16x2_128x64", "tile.k_groups = 2"): "single tiles alone share k",
    ("fp16x2_single_64x96", "tile.cluster_k = 5"): "an equal share of the columns",
    ("fp16x2_single_64x64", "tile.stages = 3"): "stages of its own",
    ("fp16x2_192x128", "tile.cluster_n = 2"): "between two warpgroups",
    ("bf16x6_128x64", "tile.has_triangle = true"): "squares, so that they meet the diagonal",
    ("fp16x2_mma_128x128", "tile.BN = 144"): "the outputs of all warps",
    ("fp16x2_mma_128x128", "tile.BK = 48, tile.warps_n = 2"): "a block of terms, or half of one",
    ("fp16x2_mma_128x64", "tile.warps_m = tile.warps_n = 1"): "a thread copies four exponents",
    ("fp16x2_mma_128x64", "tile.stages = 5"): "would leave the first tile",
    ("fp16x2_mma_128x64", "tile.instruction_k = 8, tile.single = true"): "the blocks are persistent",
}


def test_a_broken_tile_does_not_compile_and_says_why(tmp_path):
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if not compiler:
        pytest.skip("needs a C++ compiler")
    source = '#include "plan/accurate/mma_tiles.h"\n#include "plan/accurate/wgmma_tiles.h"\nusing namespace fl;\n'
    for tile, change in BROKEN:
        source += f"static_assert(must_be_sound<[] {{ auto tile = {tile}; {change}; return tile; }}()>());\n"
    path = tmp_path / "tiles.cpp"
    path.write_text(source)
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'cpp'}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error: static" in line]
    unsaid = {message for message in BROKEN.values() if not any(message in line for line in errors)}
    assert not unsaid and len(errors) >= len(BROKEN), done.stderr
