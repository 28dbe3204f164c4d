"""Tiles that break a rule do not compile, and the compiler shows which rule."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from support.source_tree import ROOT, needs_source_tree

CPP = ROOT / "cpp"
pytestmark = needs_source_tree

# What is changed in a tile, and what the compiler says then.
BROKEN = {
    ("strict_64x128k4", "tile.BM = 128"): "the outputs of all lanes and warps",
    ("strict_64x128k4", "tile.TM = 2, tile.BM = 16"): "come in fours",
    ("strict_64x128k4", "tile.BK = 20"): "a step along k is whole lines",
    ("strict_64x128k4", "tile.k_groups = 2"): "eight warps multiply",
    ("strict_64x128k4", "tile.stages = 10"): "have room there",
    ("strict_64x128k4", "tile.stages = 4"): "fit in the place of the pipeline",
    ("strict_96x96k4c2", "tile.stages = 7"): "a stage belongs to one producer",
    ("strict_128x256", "tile.stages = 3, tile.producers = 4"): "every group and every producer has a stage",
    ("strict_128x256", "tile.producers = 2"): "a persistent kernel has one producer",
    ("strict_64x64k4c2", "tile.split_k = true"): "over the grid or over a cluster, not both",
    ("strict_64x128k4", "tile.stream_k = true"): "stream-K shares out the tiles of a persistent kernel",
    ("strict_128x192p", "tile.tma_variant = true"): "TMA is Hopper's",
    ("reproducible_64x128k4", "tile.stages = 10, tile.producers = 2"): "groups share C and no stages",
    ("reproducible_64x128k4", "tile.keeps_c = false"): "groups share C and no stages",
    ("reproducible_128x128", "tile.BK = 24"): "groups share C and no stages",
    ("strict_64x128k4", "tile.wide_stages = 8"): "have room there",
    ("strict_128x192p", "tile.stages = 4"): "have room there",
    ("strict_128x192r", "tile.stages = 4"): "have room there",
    ("strict_128x128p", "tile.cluster_k = 2, tile.BK = 16, tile.split_k = tile.stream_k = false"): (
        "before Hopper there are no clusters"
    ),
    ("strict_48x48k8c2", "tile.BM = 44"): "the outputs of all lanes and warps",
    ("strict_48x48k8c2", "tile.k_groups = 2"): "have room there",
    ("strict_64x64i2", "tile.k_groups = 4"): "eight warps multiply",
    ("strict_64x64m1", "tile.TM = 4"): "sums are stored in bands",
    ("strict_64x128k2p", "tile.stages = 2"): "fit in the place of the pipeline",
    ("strict_64x32s8", "tile.BN = 48"): "the outputs of all lanes and warps",
    ("strict_64x32s8", "tile.stages = 4"): "have room there",
    ("strict_16x16w", "tile.blocks = 5"): "have room there",
    ("short_k_few", "tile.blocks = 5"): "have room there",
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


def compiled(source: str, folder: Path) -> subprocess.CompletedProcess[str]:
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if not compiler:
        pytest.skip("needs a C++ compiler")
    path = folder / "tiles.cpp"
    headers = ("strict/strict_plan.h", "accurate/mma_tiles.h", "accurate/wgmma_tiles.h")
    path.write_text("".join(f'#include "plan/{name}"\n' for name in headers) + f"using namespace fl;\n{source}")
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{CPP}", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def changed(tile: str, change: str) -> str:
    return f"[] {{ auto tile = {tile}; {change}; return tile; }}()"


def test_a_broken_tile_does_not_compile_and_says_why(tmp_path):
    done = compiled("\n".join(f"static_assert({changed(*broken)}.sound());" for broken in BROKEN), tmp_path)
    places = re.findall(r"^(.+):(\d+):\d+: error: ", done.stderr, re.MULTILINE)
    rules = [Path(file).read_text().splitlines()[int(line) - 1] for file, line in places]
    said = {message: sum(message in rule for rule in rules) for message in set(BROKEN.values())}
    assert said == Counter(BROKEN.values()), done.stderr


def test_names_follow_from_tiles(tmp_path):
    lines = [
        'static_assert(strict_64x64k4c2.name().is("strict_64x64k4c2"));',
        'static_assert(strict_64x64i2.name().is("strict_64x64i2"));',
        'static_assert(strict_64x128k2p.name().is("strict_64x128k2p"));',
        'static_assert(strict_64x32s8.name().is("strict_64x32s8"));',
        'static_assert(strict_64x64m4.name().is("strict_64x64m4"));',
        'static_assert(strict_64x64m1.name().is("strict_64x64m1"));',
        'static_assert(strict_16x16w.name().is("strict_16x16w"));',
        f'static_assert({changed("strict_64x128k4", "tile.cluster_k = 2")}.name().is("strict_64x128k4c2"));',
        'static_assert(!(strict_64x128k4.name().is("strict_64x128k4c2")));',
    ]
    done = compiled("\n".join(lines), tmp_path)
    assert done.returncode == 0, done.stderr
