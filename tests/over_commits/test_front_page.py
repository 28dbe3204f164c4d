"""The front page of the dashboard: ratios over commits, from a folder of asv's results."""

from __future__ import annotations

import json

import pytest

from support.command import needs_plot
from support.source_tree import needs_source_tree

pytest.importorskip("matplotlib")
from front_page import page

pytestmark = [needs_plot, needs_source_tree]
COLUMNS = ["result", "params", "version"]
RATIO, SECONDS = "cpu.Cubes.track_ratio_to_numpy", "cpu.Cubes.track_seconds"
COMMITS = ["a" * 40, "b" * 40, "c" * 40]


@pytest.fixture
def results(tmp_path):
    """One machine, three commits, whose files are in another order than their dates; a machine without results."""
    folder = tmp_path / "results"
    for machine in ("zen4", "idle"):
        (folder / machine).mkdir(parents=True)
        facts = {"machine": machine, "cpu": "Zen <4>", "gpu": "none", "version": 1}
        (folder / machine / "machine.json").write_text(json.dumps(facts))
    params = [["'8x8x8'", "'32x32x32'"], ["1"]]
    benchmarks = {
        name: {"name": name, "params": params, "version": "2", "unit": unit}
        for name, unit in ((RATIO, "ratio"), (SECONDS, "seconds"))
    }
    (folder / "benchmarks.json").write_text(json.dumps(benchmarks | {"version": 2}))
    for number, commit in enumerate(COMMITS):
        figures = {RATIO: [[0.8, float("nan")], [0.5, 2.0], [0.4, 1.0]][number], SECONDS: [1e-6, 2e-6]}
        found = {name: [values, params, "2"] for name, values in figures.items()}
        if number == 0:
            found["cpu.Gone.track_seconds"] = [[1.0], [], "1"]
            found[SECONDS][2] = "1"  # what it measured then was something else
        data = {"commit_hash": commit, "date": number, "result_columns": COLUMNS, "results": found}
        (folder / "zen4" / f"{'zyx'[number]}.json").write_text(json.dumps(data))
    return folder


def test_a_page_of_ratios_over_commits(results):
    text = page(results)
    assert "Zen &lt;4&gt;" in text and "idle" not in text and "http" not in text
    assert f'href="commits.html#{COMMITS[-1]}"' in text and f'href="index.html#{RATIO}"' in text
    assert "<td>2.50</td><td>1.25</td>" in text  # 8x8x8: 1 / 0.4 today, 1 / 0.8 at first
    assert "<td>1.00</td><td>0.50</td>" in text  # 32x32x32, which the first commit has no figure for
    assert "<td>1.58</td><td>0.79</td>" in text  # of both, by the geometric mean
    assert text.count("<tr><th>operation</th><th>today</th>") == 2 and "less is better" in text
    assert text.count("<svg") == 3 and f"{COMMITS[1][:9]} 2.00" in text
