"""GPU benchmarks over commits do what they say, on a device whose times mean nothing."""

from __future__ import annotations

import json
from pathlib import Path

from support.simulation.library import run
from support.source_tree import needs_source_tree

pytestmark = needs_source_tree
PROGRAM = Path(__file__).with_name("benchmarks_on_device.py")


def test_each_measures_or_says_what_it_lacks(library):
    answers = json.loads(run(library, [str(PROGRAM)]).splitlines()[-1])
    lacks = {name: answer["skipped"] for name, answer in answers.items() if "skipped" in answer}
    assert all("PyTorch with CUDA" in reason for reason in lacks.values()), lacks
    measured = {name for name, answer in answers.items() if answer.get("value", 0) > 0}
    assert measured | set(lacks) == set(answers), {n: a for n, a in answers.items() if n not in measured | set(lacks)}
    for kind in ("Products", "Cubes", "Thin", "Batches", "Vectors", "Transposes"):
        assert {f"gpu.{kind}.track_seconds", f"gpu.{kind}.track_ratio_to_ladder"} <= measured
    assert {"gpu.Call.track_host_seconds", "host.Square.track_seconds", "kernels.GpuSgemm.track_seconds"} <= measured
    assert "wide" in measured
