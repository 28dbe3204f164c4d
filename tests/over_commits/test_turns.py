"""tools/compare and tools/asv_wheels with real builds: copies of the installed package, one of them with a fault."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from turns.builds import NotABuild, resolve
from turns.cases import Case, between_builds
from turns.rounds import Build, ask

import fastlinalg as fl
from fastlinalg import _core
from support.programs import completed
from support.source_tree import ROOT, needs_source_tree

pytestmark = needs_source_tree
IN_GIT = (ROOT / ".git").exists()
ONE_CALL = r"Call.track_seconds\(matmul out, 2\)"
SLOW = """
_quick = matmul
def matmul(*operands, **options):
    return [_quick(*operands, **options) for _ in range(300)][0]
"""  # calls on one thread are timed by its CPU time, in which waiting is not counted
END = "\nimport os\ndef matmul(*operands, **options):\n    os._exit(3)\n"


def copy(folder: Path, more: str = "") -> Path:
    """A folder to import the installed package from, with more at the end of its first module."""
    package = folder / "fastlinalg"
    for part in {Path(module.__file__).parent for module in (fl, _core)}:  # two where the install is editable
        shutil.copytree(part, package, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    with (package / "__init__.py").open("a") as file:
        file.write(more)
    return folder


def run(tool: str, *arguments: object) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "tools" / tool), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def current_commit() -> str:
    return completed("git", "rev-parse", "HEAD", cwd=ROOT).stdout.strip()


@pytest.fixture
def base(tmp_path):
    return copy(tmp_path / "base")


needs_scipy = pytest.mark.skipif(importlib.util.find_spec("scipy") is None, reason="needs SciPy")


@needs_scipy
def test_a_slower_call_fails_the_comparison(base, tmp_path):
    """And the size of the package, which is the same but for some bytes, does not."""
    head, data = copy(tmp_path / "head", SLOW), tmp_path / "moved.json"
    bench = ONE_CALL + "|Size.track_installed"
    status, said = run("compare", base, head, "--bench", bench, "--rounds", 3, "--confirm", 3, "--json", data)
    assert status == 1 and "2 cases, 1 with a second look" in said, said
    assert re.search(r"round 3 of 3, \d+\.\d min left", said), said
    assert re.search(r"1 of 2 cases look different: 3 rounds of these, about \d+\.\d min", said), said
    assert "slower:" in said and "calls.Call.track_seconds(matmul out, 2)" in said and "faster" not in said, said
    call, size = json.loads(data.read_text())
    assert len(call["base_first"]["values"]) == len(call["head_second"]["values"]) == 3
    assert len(size["base_first"]["values"]) == 3 and not size["head_second"]


@needs_scipy
def test_what_no_longer_answers_fails_the_comparison(base, tmp_path):
    status, said = run(
        "compare", base, copy(tmp_path / "head", END), "--bench", ONE_CALL, "--rounds", 2, "--confirm", 2
    )
    assert status == 1 and "the process ended with status 3" in said, said


@pytest.mark.parametrize("wrong", [("no-such-commit", "."), (".", ".", "--bench", "nothing")])
@needs_scipy
def test_what_cannot_be_compared_is_another_status(wrong, base, tmp_path):
    arguments = [base if argument == "." else argument for argument in wrong]
    status, said = run("compare", *arguments)
    assert status == 2 and "Traceback" not in said, said


def test_the_wide_set_has_means_by_group_and_names_what_changed(base, tmp_path):
    """Of two equal builds, without SciPy; `--minutes` ends the rounds and not the command."""
    two = ("--set", "wide", "--rounds", 2, "--confirm", 0)
    status, said = run("compare", base, base, "--bench", r"ShortK.*\(64x64x1:|Random.*x1\d:TN, 1", *two)
    for group in ("wide.ShortK.track_seconds", "wide.Random.track_seconds"):
        assert re.search(rf"[+-]\d+\.\d\d %  \(.* to .* %\)  {group}, 2 cases", said), said
    assert status == 0 and "changed most:" in said, said
    status, said = run("compare", base, base, *two, "--minutes", 0)
    assert status == 0 and "geometric means" in said, said


def test_builds_are_compared_without_peers_unless_asked():
    names = ("calls.Call.track_seconds", "calls.Call.track_ratio_to_numpy")
    both = [Case(name, (), "", "1", True) for name in names]
    assert between_builds(both) == both[:1] and between_builds(both, "Call.track_ratio") == both


def test_a_process_that_ends_costs_one_case(base, tmp_path):
    """What comes after the case that ends the process is measured in the next one."""
    build = Build("head", copy(tmp_path / "head", END))
    names = [
        ("process.Size.track_installed_bytes", ()),
        ("calls.Call.track_seconds", ("matmul out", 2)),
        ("calls.Call.track_seconds", ("transpose out", 2)),
        ("cpu.Syrk.track_seconds", ("256x256", "sloppy", 1)),
    ]
    answers = ask(build, [Case(name, params, "", "1", True) for name, params in names])
    kinds = [next(iter(answer)) for answer in answers]
    assert kinds[:3] == ["value", "failed", "value"], answers


def test_another_package_than_the_one_asked_for_is_refused(tmp_path):
    """An empty folder: import finds the installed one."""
    with pytest.raises(RuntimeError, match="was to be measured, and import found"):
        ask(Build("empty", tmp_path), [Case("process.Size.track_wheel_bytes", (), "bytes", "1", True)])


def test_what_is_no_build_is_named(tmp_path):
    with pytest.raises(NotABuild, match="nowhere"):
        resolve("nowhere", tmp_path / "base", "OFF", print)


@pytest.mark.skipif(importlib.util.find_spec("asv") is None, reason="needs asv")
@pytest.mark.skipif(not IN_GIT, reason="needs the repository")
def test_results_of_builds_by_turns_are_results_of_asv(base, tmp_path):
    from asv.results import Results

    commit, results = current_commit(), tmp_path / "results"
    options = ("--machine", "here", "--rounds", 1, "--results", results, "--json", tmp_path / "samples.json")
    status, said = run("asv_wheels", *options, "--bench", "Size.track_installed|" + ONE_CALL, f"{commit}={base}")
    assert status == 0 and "round 1 of 1" in said, said
    (kept,) = json.loads((tmp_path / "samples.json").read_text())["builds"]
    assert [len(row["values"]) for row in kept["cases"]] == [1, 1] and kept["commit"] == commit
    (file,) = (results / "here").glob(f"{commit[:8]}-*.json")
    found = Results.load(str(file))
    assert found.commit_hash == commit and found.params["machine"] == "here"
    size = "process.Size.track_installed_bytes"
    assert set(found.get_all_result_keys()) == {size, "calls.Call.track_seconds"}
    assert found.get_result_value(size, [])[0] > 0
    status, said = run("asv_wheels", *options, "--bench", r"Call.track_seconds\(matmul fresh, 2", f"{commit}={base}")
    assert status == 0, said
    params = found.get_result_params("calls.Call.track_seconds")
    values = Results.load(str(file)).get_result_value("calls.Call.track_seconds", params)
    assert sum(value is not None and value > 0 for value in values) == 2  # the first is still there


@pytest.mark.skipif(importlib.util.find_spec("asv") is None, reason="needs asv")
@pytest.mark.skipif(not IN_GIT, reason="needs the repository")
def test_what_was_measured_elsewhere_is_added(base, tmp_path):
    """Where it is measured there is neither asv nor the repository: the commit is given whole, and is not looked up."""
    commit, file, results = current_commit(), tmp_path / "samples.json", tmp_path / "results"
    elsewhere = tmp_path / "checkout"
    for part in ("asv_bench/turns", "asv_bench/benchmarks", "tools/asv_wheels", "python/fastlinalg/bench", "cpp/table"):
        source, target = ROOT / part, elsewhere / part
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    program = (
        "import runpy, sys\nfor name in ('asv', 'scipy'): sys.modules[name] = None\n"
        "sys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    )
    options = ["--machine", "there", "--rounds", "2", "--bench", ONE_CALL, "--measure-only", str(file)]
    command = [sys.executable, "-c", program, str(elsewhere / "tools" / "asv_wheels"), *options, f"{commit}={base}"]
    completed(*command)
    assert not (elsewhere / "asv_bench" / "results").exists()
    whole = json.loads(file.read_text())
    never = whole["builds"][0] | {"commit": "0" * 40}  # its turn had not come when the time was over
    never["cases"] = [case | {"values": []} for case in never["cases"]]
    file.write_text(json.dumps(whole | {"builds": [*whole["builds"], never]}))
    status, said = run("asv_wheels", "--add", file, "--results", results)
    assert status == 0, said
    assert not list((results / "there").glob("00000000-*"))
    assert json.loads((results / "there" / "machine.json").read_text())["cpu"]
    (added,) = (results / "there").glob(f"{commit[:8]}-*.json")
    kept, _ = json.loads(file.read_text())["builds"]
    values = json.loads(added.read_text())["results"]["calls.Call.track_seconds"][0]
    assert min(kept["cases"][0]["values"]) in values


@pytest.mark.skipif(importlib.util.find_spec("asv") is None, reason="needs asv")
@pytest.mark.parametrize("wrong", ["elsewhere.whl", "nowhere", "HEAD=elsewhere.whl"])
def test_a_wheel_needs_a_commit_and_a_file(wrong):
    status, said = run("asv_wheels", wrong)
    assert status == 2 and "Traceback" not in said and wrong.split("=")[-1] in said, said
