"""Benchmarks over commits: names and parameters are literal and do not change unnoticed, and each of them runs."""

from __future__ import annotations

import json
import re
import sys
from types import SimpleNamespace

import pytest
from benchmarks import process, timing
from turns import cases
from turns.quick import possible

import fastlinalg as fl
from support.programs import completed
from support.rows import OPERATIONS
from support.source_tree import ROOT, needs_source_tree

pytestmark = needs_source_tree
LIST = ROOT / "asv_bench" / "results" / "benchmarks.json"


def literal(row: dict) -> tuple:
    """What results are found by, but for kernels' names, which are those of the table."""
    return row["version"], row["unit"], row["params"][row["name"].startswith("kernels.") :]


@pytest.mark.skipif(not LIST.exists(), reason="needs the results")
def test_what_has_results_keeps_its_name_and_parameters():
    """What is renamed or gone loses its history. Where that is meant, its line in the list changes too."""
    listed = json.loads(LIST.read_text())
    assert listed.pop("version") and len(listed) > 50
    there = {
        name: {
            "name": name,
            "version": kind.version,
            "unit": function.unit,
            "params": [list(map(repr, values)) for values in getattr(kind, "params", ())],
        }
        for name, kind, function in cases.methods()
    }
    assert {name: literal(there[name]) for name in listed if name in there} == {
        n: literal(r) for n, r in listed.items()
    }


def test_nothing_in_them_depends_on_the_commit(tmp_path):
    """A package without a single name gives the same list."""
    (tmp_path / "fastlinalg").mkdir()
    (tmp_path / "fastlinalg" / "__init__.py").touch()
    child, env = ROOT / "asv_bench" / "turns" / "child.py", {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin"}
    done = completed(sys.executable, child, input='{"list": "full"}', env=env)
    found = [(row["name"], *row["params"]) for row in json.loads(done.stdout)]
    assert found == [(case.name, *case.params) for case in cases.every()]


def test_quick_parameters_are_among_all():
    for name, kind, function in cases.methods():
        known = [case.params for case in cases.every() if case.name == name]
        quick = getattr(kind, "quick", {})
        assert all(hasattr(kind, other) for other in quick), name
        for params in quick.get(function.__name__, ()):
            assert tuple(params) in known, f"{name}: {params}"
    quick = cases.every("quick")
    assert 100 < len(quick) < 250
    assert {case.name.split(".")[0] for case in quick} == set(cases.MODULES)


def test_the_quick_set_leaves_out_what_has_no_hardware_here():
    found = cases.every("quick")
    left = [case for case in found if not possible(case, gpu=False)]
    assert {case.name.split(".")[0] for case in left} == {"gpu", "host"} and len(left) < len(found)
    assert all(possible(case, gpu=True) for case in found)


def test_the_regular_expression_of_a_set_matches_it_alone():
    every, quick = cases.every(), cases.every("quick")
    pattern = re.compile(cases.regex(quick))
    for case in every:  # as asv writes them
        name = f"{case.name}({', '.join(map(repr, case.params))})" if case.params else case.name
        assert bool(pattern.search(name)) == case.quick, name


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_kernel_of_the_table_is_named(op):
    """A new row is measured from its first commit on: asv_bench/benchmarks/kernels.py reads the table."""
    named = {
        name for _, kind, _ in cases.methods() if getattr(kind, "op", None) == op for name in kind.params[0]
    }  # fmt: skip
    assert {row.name for row in fl.kernels(op)} <= named


@pytest.fixture
def in_a_moment(monkeypatch):
    """Measurements of a few calls, for what they do and not for what they find."""
    monkeypatch.setattr(timing.shared, "BLOCK_US", 10.0)
    monkeypatch.setattr(timing, "PLAN", timing.shared.Plan(1, 10.0))
    monkeypatch.setattr(timing, "SAMPLES_AMONG_THREADS", timing.shared.Plan(1, 10.0))
    monkeypatch.setattr(timing, "AMONG_THREADS", timing.shared.Quiet())
    monkeypatch.setattr(process, "TIMES", 1)
    zipfile = process.zipfile
    monkeypatch.setattr(process, "zipfile", SimpleNamespace(ZipFile=zipfile.ZipFile, ZIP_DEFLATED=zipfile.ZIP_STORED))


@pytest.mark.parametrize(("name", "kind", "function"), [pytest.param(*row, id=row[0]) for row in cases.methods()])
def test_each_measures_or_says_why_not(name, kind, function, in_a_moment):
    first = next(case for case in cases.every() if case.name == name)
    one = kind()
    threads = fl.get_num_threads()
    try:
        one.setup(*first.params) if hasattr(one, "setup") else None
        found = getattr(one, function.__name__)(*first.params)
    except NotImplementedError as reason:
        on_device = "gpu." in name or "Gpu" in name or "OnDevice" in name
        peers = "threadpoolctl" in str(reason)
        assert str(reason) and ((on_device and not fl.cuda.is_available()) or peers), str(reason)
    else:
        assert found >= 0
    finally:
        getattr(one, "teardown", lambda *_: None)(*first.params)
    assert fl.get_num_threads() == threads


@pytest.mark.parametrize(
    ("kind", "params", "reason"),
    [
        ("cpu.Products", ("128x128x1024", "sloppy", 1), 'no precision="sloppy" at this commit'),
        ("cpu.Products", ("128x128x1024", "accurate", 4096), "4096 threads were asked for"),
        ("cpu.Products", ("16384x16384x1024", "accurate", 1), "too many for a CPU"),
        ("cpu.Vectors", ("32768x32768", "A x", 1), "too much memory"),
        ("kernels.CpuSgemm", ("no_such", "64x64x64"), 'no sgemm kernel is called "no_such"'),
    ],
)
def test_what_is_lacking_is_said(kind, params, reason):
    lacking = next(each for name, each, _ in cases.methods() if name.startswith(kind + "."))
    with pytest.raises(NotImplementedError, match=reason):
        lacking().setup(*params)
