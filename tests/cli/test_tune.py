"""``fastlinalg tune``: the fit, and the command."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from fastlinalg.bench import tuning
from fastlinalg.cli.tune import parts_of, text_of
from support.command import checked, command
from support.programs import completed, patient
from support.tuning_tables import interchangeable, table, write


# ---------------------------------------------------------------- the fit
def synthetic(truth, shapes=40, noise=0.02, seed=3):
    """Problems on which three rows take `truth[row]` times what their rules say."""
    rng = np.random.default_rng(seed)
    groups = []
    for _ in range(shapes):
        size = 10 ** rng.uniform(0, 4)
        rules = {"a": size, "b": size * rng.uniform(0.8, 1.3), "c": size * rng.uniform(0.9, 2.0)}
        groups.append(
            [
                tuning.Sample(r, us, us * truth[r](us) * math.exp(rng.normal(0, noise)), r != "c")
                for r, us in rules.items()
            ]
        )
    return groups


def test_the_fit_finds_what_is_there():
    found = tuning.judge(
        "sgemm", synthetic({"a": lambda us: 2.0 if us > 100 else 1.0, "b": lambda us: 1.0, "c": lambda us: 0.7})
    )
    assert found.before > 1.1 and found.after < 1.03
    assert tuning.corrected(found.factors["a"], 3.0) == pytest.approx(3.0, rel=0.05)
    assert tuning.corrected(found.factors["a"], 2000.0) == pytest.approx(4000.0, rel=0.05)
    assert tuning.corrected(found.factors["c"], 30.0) == pytest.approx(21.0, rel=0.05)


def test_noise_is_not_taken_for_a_difference():
    found = tuning.judge("sgemm", synthetic(dict.fromkeys("abc", lambda us: 1.0), noise=0.3))
    assert found.factors == {}


@pytest.mark.parametrize(("factor", "used"), [(1.02, False), (1.2, True)])
def test_less_than_one_per_cent_is_not_worth_a_table(factor, used):
    """Rows that take a few per cent more than the rules say, where others are seldom as near as that."""
    found = tuning.judge(
        "sgemm", synthetic({"a": lambda us: factor, "b": lambda us: 1.0, "c": lambda us: 1.0}, noise=0)
    )
    assert (1.0 < found.before / found.after < 1.01) != used and bool(found.factors) == used, found


def test_outliers_and_absurd_ratios():
    groups = synthetic(dict.fromkeys("abc", lambda us: 1.0))
    groups[3] = [tuning.Sample(s.kernel, s.rule_us, s.us * 1000.0, s.strict) for s in groups[3]]
    assert all(0.9 < factor < 1.1 for knots in tuning.fit(groups).values() for _, factor in knots)
    wild = tuning.fit([[tuning.Sample("a", 1.0, 1e6)] for _ in range(5)])
    assert [factor for _, factor in wild["a"]] == [tuning.CLAMP]
    assert tuning.judge("sgemm", groups[:4]).factors == {}


def test_the_problems_are_the_same_everywhere():
    for device, operations in tuning.SHAPES.items():
        for op, wanted in operations.items():
            todo = tuning.problems(op, device)
            assert len(todo) == wanted and todo == tuning.problems(op, device)
            assert all(problem.work <= tuning.MOST_WORK[device][op] for problem in todo)
            quick = tuning.problems(op, device, tuning.QUICK)
            assert quick == todo[: len(quick)] and len(quick) == -(-wanted // 3)


def test_rows_for_one_precision_are_measured_apart():
    found = {"strict_128x256": 3.0, "fp16x2": 1.0, "reproducible_128x256": 3.5, "reproducible_64x64m1": 4.0}
    chosen, others = tuning.parts("sgemm", "cuda", found)
    assert list(chosen) == ["strict_128x256", "fp16x2"]
    assert list(others) == ["reproducible_128x256", "reproducible_64x64m1"]
    assert tuning.parts("sgemm", "cpu", {"avx2_6x16": 1.0, "reference": 9.0}) == (
        {"avx2_6x16": 1.0, "reference": 9.0},
        {},
    )
    assert tuning.parts("transpose", "cuda", {"tiled": 1.0}) == ({"tiled": 1.0}, {})


# ---------------------------------------------------------------- the command
NOTHING_MEASURED = "tuning.SHAPES['cpu'] = {}"


def tune(changes: str, *options: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """In a process of its own, with changes to what is measured."""
    code = f"import sys; from fastlinalg.bench import busy, tuning; from fastlinalg.cli import main; {changes}; "
    program = [sys.executable, "-c", code + "sys.exit(main(['tune', *sys.argv[1:]]))", *options]
    return checked(completed(*program, status=status), changes, status)


def test_tune_show_reset(environment, monkeypatch):
    """Three shapes an operation, so that it takes a second."""
    _, path = environment
    assert "no table at" in command("tune --show").stdout
    assert "no table at" in command("tune --reset").stdout
    done = tune("tuning.SHAPES['cpu'] = {'sgemm': 8, 'transpose': 6}", "--force", "--device", "cpu")
    assert f"written to {path}" in done.stdout, done.stdout
    text = path.read_text()
    assert text.startswith(f"fastlinalg-tuning 2 {fl.__version__}\n") and text == text_of(parts_of(text).values())
    assert list(parts_of(text)) == [f"device cpu {_core.cpu_name()}"]
    shown = command("tune --show").stdout
    assert str(path) in shown and _core.cpu_name() in shown and "sgemm: " in shown and "transpose: " in shown
    assert list(path.parent.iterdir()) == [path], "a temporary file is left"
    assert f"removed {path}" in command("tune --reset").stdout
    assert not path.exists()


@pytest.mark.parametrize(
    ("before", "after", "used", "words"),
    [
        (1.10, 1.00, True, "about 10 % faster on this machine with the kernels chosen from now on"),
        (1.002, 1.002, False, "choice of kernels is the fastest on this machine, and tuning does not better it"),
        (1.09, 1.10, False, "choice of kernels is within 9 % of the fastest on this machine"),
    ],
)
def test_the_verdict_is_in_words(environment, before, after, used, words):
    _, path = environment
    found = [{"op": "sgemm", "shapes": 40, "before": before, "after": after}]
    write(path, table(found=found) if used else table(found=found, factors={}))
    assert words in command("tune --show").stdout


def test_a_busy_machine_is_refused(environment):
    _, path = environment
    changes = f"{NOTHING_MEASURED}; busy.busy = lambda device: f'other programs keep the {{device}} busy'"
    assert "other programs keep the cpu busy" in tune(changes, "--device", "cpu", status=1).stderr
    assert not path.exists()
    done = tune(changes, "--device", "cpu", "--force")
    assert path.exists() and "it changes nothing: the rules go on to choose" in done.stdout


def test_other_devices_stay_in_the_file(environment):
    _, path = environment
    write(path, table(kind="cuda", name="some GPU", factors={}))
    for _ in range(2):
        tune(NOTHING_MEASURED, "--force", "--device", "cpu")
    assert list(parts_of(path.read_text())) == ["device cuda some GPU", f"device cpu {_core.cpu_name()}"]


WRITER = """
import sys
from pathlib import Path
from fastlinalg.cli.tune import _replace

for i in range(20):
    _replace(Path(sys.argv[1]), f"device cuda GPU {sys.argv[2]}.{i}\\n")
"""


def test_runs_at_the_same_time_keep_each_others_entries(environment):
    _, path = environment
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(i)]) for i in range(3)]
    assert [writer.wait(patient(120)) for writer in writers] == [0] * 3
    assert len(parts_of(path.read_text())) == 60


def test_show_prints_the_factors_and_what_is_wrong(environment):
    _, path = environment
    write(path, table())
    text = command("tune --show").stdout
    assert interchangeable()[0] in text and "about 8 % faster on this machine" in text
    for content in ("", "{"):
        write(path, content)
        assert "is not used: it is no table of fastlinalg tune" in command("tune --show", 1).stderr


def test_a_table_that_cannot_be_written_is_refused_before_measuring(environment, monkeypatch):
    _, path = environment
    path.mkdir()
    for place in (path, "/proc/no files are made here"):
        monkeypatch.setenv("FASTLINALG_TUNE", str(place))
        said = tune("tuning.tune = None", "--force", "--device", "cpu", status=1).stderr
        assert f"fastlinalg tune: error: {place}: " in said and "Traceback" not in said
    assert list(path.parent.iterdir()) == [path]


def test_whoever_may_read_other_files_may_read_a_table(environment):
    _, path = environment
    path.with_name(f"{path.name}.new").symlink_to(path.with_name("another"))  # and it is written to its own place
    tune(NOTHING_MEASURED, "--force", "--device", "cpu")
    (another := path.with_name("another")).touch(exist_ok=False)
    assert path.stat().st_mode == another.stat().st_mode


def test_show_of_a_table_in_other_letters(environment):
    _, path = environment
    path.write_bytes(table().encode().replace(b"2026", b"\xff"))
    assert "measured \ufffd-11-21" in command("tune --show").stdout


def test_errors_of_the_command(environment, monkeypatch):
    _, path = environment
    if not fl.cuda.is_available():
        assert "--device cuda: " in command("tune --device cuda", 1).stderr
    command("tune --show --reset", 2)
    monkeypatch.setenv("FASTLINALG_TUNE", "off")
    assert "FASTLINALG_TUNE=off" in command("tune", 2).stderr
    monkeypatch.setenv("FASTLINALG_TUNE", str(write(path.with_name("a file"), "")) + "/below")
    assert "error: " in command("tune --force --device cpu", 1).stderr


@pytest.mark.gpu
def test_tune_on_the_gpu(environment):
    _, path = environment
    few = "tuning.SHAPES['cuda'] = dict.fromkeys(tuning.SHAPES['cuda'], 8)"
    short = "tuning.MOST_WORK['cuda'] = dict.fromkeys(tuning.SHAPES['cuda'], 1e5)"
    done = tune(f"{few}; {short}", "--force", "--device", "cuda")
    assert f"written to {path}" in done.stdout, done.stdout
    ((device, part),) = parts_of(path.read_text()).items()
    assert device == f"device cuda {fl.devices()[0]['name']}"
    assert re.findall(r"^#   (\w+): ", part, re.MULTILINE)[:3] == ["sgemm", "sgemv", "transpose"]
