"""``python -m fastlinalg``: what it prints, the files it writes, and its exit status."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg._cases import cases
from fastlinalg.cli.selftest import _subjects, sample
from support.command import command, here
from support.programs import completed, patient
from support.rows import OPERATIONS


def test_version_and_help():
    assert command("--version").stdout.strip() == f"fastlinalg {fl.__version__}"
    text = command("--help").stdout
    for word in ("info", "kernels", "explain", "selftest", "bench", "tune", "report", "show-versions"):
        assert word in text


def test_info():
    text = command("info").stdout
    assert fl.__version__ in text and fl.info()["cpu"]["isa"] in text
    if not fl.cuda.is_available():
        assert fl.info()["cuda"]["message"] in text


def test_info_says_each_reason_once():
    rows = [row for op in OPERATIONS for row in fl.kernels(op)]
    text = here("info").stdout
    assert f"{sum(row.available for row in rows)} of {len(rows)} run here" in text
    assert not any(row.blurb in text for row in rows)
    assert all(text.count(f"not here: {row.reason}\n") == 1 for row in rows if not row.available)


def test_info_json():
    data = json.loads(here("info --json").stdout)
    assert all(name.startswith(("FASTLINALG_", "OMP_NUM_THREADS")) for name in data["environment"])
    assert data["version"] == fl.__version__ and data["cpu"] == fl.info()["cpu"]


@pytest.mark.parametrize("line", ["info", "show-versions"])
def test_what_a_report_of_a_fault_needs(line, monkeypatch):
    """Python and NumPy, variables with what is wrong with them, the tuning table."""
    settings = {"NUM_THREADS": "abc", "CPU": "sse", "DEVICE": "gpu", "COMPUTE_CAPABILITY": "abc", "TUNE": "Off"}
    for name, value in settings.items():
        monkeypatch.setenv(f"FASTLINALG_{name}", value)
    text = command(line).stdout
    assert platform.python_version() in text and np.__version__ in text and "none: FASTLINALG_TUNE=Off" in text
    assert "driver" in text and all(device["name"] in text for device in fl.devices())
    for name, value in settings.items():
        assert re.search(rf"^FASTLINALG_{name} +{value}$", text, re.MULTILINE)
        assert name == "TUNE" or len(re.findall(rf"^warning +FASTLINALG_{name}", text, re.MULTILINE)) == 1, text


def test_kernels():
    text = here("kernels").stdout
    rows = [row for op in OPERATIONS for row in fl.kernels(op)]
    shown = {tuple(line.split()[:3]) for line in text.splitlines()}
    assert all(((row.op, row.name, row.device) in shown) == row.available for row in rows)
    assert all(f"not here: {row.reason}" in text for row in rows if not row.available)
    every = here("kernels --all sgemv --device cuda").stdout
    assert [line.split()[:3] for line in every.splitlines() if line.startswith("sgemv")] == [
        ["sgemv", row.name, "cuda"] for row in fl.kernels("sgemv") if row.device == "cuda"
    ]


def test_explain():
    assert here("explain 100x50 50x70 --device cpu").stdout == f"{fl.explain((100, 50), (50, 70), device='cpu')}\n"
    options = "--trans-a --trans-b --kernel reference --precision strict"
    assert here(f"explain 50x100 8x70x50 {options}").stdout.startswith("sgemm 100x70x50 batch 8 on the CPU")
    assert "transpose 30x40 on the CPU" in here("explain 30x40 --device cpu").stdout
    assert "the closest that run here" in here("explain 3x4 4x5 --kernel avx2", 2).stderr
    if not fl.cuda.is_available():
        assert fl.info()["cuda"]["message"] in here("explain 3x4 4x5 --device cuda", 1).stderr


def test_what_the_selftest_checks():
    """Rows for the bound that they promise, and what is chosen without a name."""
    for device in ("cpu", "cuda"):
        rows = {row.name: row for row in fl.kernels("sgemm") if row.device == device and row.available}
        checked = {label: precision for label, _, precision in _subjects("sgemm", device, None)}
        assert {name: checked[name] == "strict" for name in rows} == {name: row.strict for name, row in rows.items()}
        assert ("(dispatch, accurate)" in checked) == any(not row.strict for row in rows.values())


def test_selftest():
    text = command("selftest --quick --device cpu").stdout
    for op in OPERATIONS:
        for row in fl.kernels(op):
            if row.device == "cpu" and row.available:
                assert any(line.split()[:2] == [op, row.name] and "PASS" in line for line in text.splitlines()), row
    assert float(re.search(r"passed in ([\d.]+) s", text)[1]) < patient(120)
    assert "FAIL" not in text and "sgemm     (dispatch, reproducible) cpu " in text


def test_selftest_of_one_kernel():
    """It and nothing else, for each operation that has it; what cannot run is an error."""
    lines = here("selftest --quick --every 20 --kernel reference,portable_small --device cpu").stdout.splitlines()
    tested = [line.split()[:3] for line in lines if line.endswith("PASS")]
    assert tested == [
        [op, name, "cpu"]
        for op, names in {
            "sgemm": ["reference", "portable_small"],
            "sgemv": ["reference"],
            "transpose": ["reference"],
            "ssyrk": ["reference", "portable_small"],
        }.items()
        for name in names
    ]
    missing = next(row for row in fl.kernels("sgemm") if not row.available)
    assert f"{missing.name} cannot run here: {missing.reason}" in here(f"selftest --kernel {missing.name}", 1).stderr


@pytest.mark.gpu
def test_selftest_on_the_gpu():
    assert "FAIL" not in command("selftest --quick --every 20 --device cuda").stdout


@pytest.mark.parametrize("every", [1, 43, 67, 1000])
def test_few_cases_of_the_selftest(every):
    """What sanitizers see of kernels that split their operands into terms is not only what these leave to others."""
    quick = list(cases("sgemm", quick=True))
    few, more = (sample(quick, every, terms) for terms in (False, True))
    assert few == quick[::every] == more[: len(few)]
    assert len(more) <= len(few) + 2
    taken, refused = ([case for case in more if case.terms == answer] for answer in ("take", "refuse"))
    assert all(case.operands[0].shape[-1] >= 256 for case in refused) and taken
    # A tile of the float32 fallback that is whole, and others.
    assert any(min(case.expected.value.shape) > 128 for case in refused)
    assert sample(list(cases("transpose", quick=True)), every, True)


def test_selftest_of_a_missing_gpu_fails():
    if fl.cuda.is_available():
        pytest.skip("there is a GPU")
    assert "no CUDA device" in here("selftest --device cuda", 1).stdout


def test_selftest_notices_a_fault(python):
    """The command in a process where one kernel drops the last row of its results."""
    program = (
        "import fastlinalg as fl, sys\n"
        "from fastlinalg.cli import main\n"
        "sgemm = fl.sgemm\n"
        "def faulty(*operands, **options):\n"
        "    result = sgemm(*operands, **options)\n"
        "    if options.get('kernel') == 'reference': result[..., -1:, :] = 0\n"
        "    return result\n"
        "fl.sgemm = faulty\n"
        "sys.exit(main(['selftest', '--quick', '--device', 'cpu', '--op', 'sgemm']))\n"
    )
    assert "FAIL" in python(program, status=1)


WRONG = {
    "": "COMMAND",
    "frobnicate": "frobnicate",
    "explan 3x4": "there is no choice 'explan'; did you mean explain? There are info, ",
    "explain 3y4": "must be a shape as 1000x500, got '3y4'",
    "explain 3x4 --precision stricter": "did you mean strict?",
    "kernels sgem": "did you mean sgemv or sgemm?",
    "info --jsn": "unrecognized arguments: --jsn; did you mean --json?",
    "selftest --kernel avx": "there is no kernel 'avx'",
    "selftest --kernel portable --device cuda": "portable is a kernel of --device cpu, not cuda",
    "selftest --op sgem": "did you mean sgemv or sgemm?",
    "tune --shw": "did you mean --show?",
    "bench": "required: {sgemm,sgemv,transpose,host,all}\n'fastlinalg bench --help' shows what there is\n",
    "bench dgemm": "did you mean sgemm",
    "bench sgemm --kernels nothing": "there is no cpu kernel 'nothing'; there are ",
    "bench sgemm --kernal dispatch": "did you mean --kernels?",
    "bench sgemm --repeat=3": "did you mean --repeats?",
    "bench sgemm --devices 2": "unrecognized arguments: --devices 2",
    "bench sgemm --threads 257": "at most 256, got 257",
    "bench sgemm --shapes 12y": "12y",
    "bench sgemm --shapes 0x3x4": "0x3x4",
    "bench all --shapes 64": "--shapes",
    "bench sgemm --shapes=": "got ''",
    "bench sgemm --shapes 8 --json=": "--json: must name a file, got ''",
    "report o.json --output=": "--output: must name a file",
    "bench sgemm --shapes 3x4x5:XY": "XY",
    "bench sgemm --shapes 3x4x5*0": "*0",
    "bench sgemm --shapes 64 --random 3": "--random",
    "bench sgemm --random 0": "at least 1",
    "bench sgemm --random 99999999999": "at most 2147483647",
    "bench sgemm --seed -1": "at least 0",
    "bench sgemm --limit nan": "more than 0",
    "bench sgemm --limit -1": "more than 0",
    "bench sgemm --kernels ,": "must name something",
    "bench sgemm --shapes 8 --plot o.nope": ".png",
    "bench sgemm --shapes 8 --plot nosuffix": ".png",
    "selftest --seed -1": "at least 0",
    "selftest --every 0": "at least 1",
    "selftest --every 1.5": "must be a whole number of at least 1",
    "bench sgemm --precision double": "double",
    "bench host --against scipy": "scipy",
    "bench host --kernels reference": "--kernels",
    "bench host --shapes 3x4": "3x4",
    "bench host --shapes 3x4x5:G": "3x4x5:G",
    "bench sgemm --data grades": "there is no data 'grades'",
    "bench sgemm --against blitz": "no peer 'blitz'; there are numpy, scipy, cupy, torch, cublas, tf32, strict",
    "bench sgemm --repeats 0": "at least 1",
    "bench sgemm --device tpu": "tpu",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_use(line):
    word = WRONG[line]
    if "there is no cpu" in word:
        line += " --device cpu"
    if "--plot" in line:
        pytest.importorskip("matplotlib")
    said = here(line, 2).stderr
    assert word in said and len(said.splitlines()) <= 2, said


def test_one_help_page_a_command():
    """With its own options alone."""
    options = {}
    for line in ("bench sgemm", "bench sgemv", "bench host", "bench", "selftest"):
        options[line] = set(re.findall(r"--[a-z]+", here(f"{line} --help").stdout))
    assert "--kernels" in options["bench sgemm"] - options["bench host"]
    assert "--devices" in options["bench host"] - options["bench sgemm"]
    assert options["bench sgemm"] - options["bench sgemv"] == {"--data", "--precision"}
    assert options["bench"] == {"--help"}
    assert "--kernel" in options["selftest"]


@pytest.mark.parametrize("line", ["bench sgemm --plot o.png", "report o.json"])
def test_a_missing_package_is_named(line, tmp_path, monkeypatch):
    """By a command that every shell takes, and only when nothing else is wrong."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    if line.startswith("report"):
        assert "o.json: No such file" in here(line, 2, tmp_path).stderr
        (tmp_path / "o.json").write_text(json.dumps(EMPTY))
    assert here(line, 1, tmp_path).stderr.endswith("install it with: pip install matplotlib\n")


EMPTY = {"schema": 1, "rows": [], "skipped": [], "machine": {"peak_gflops": 1}}
EMPTY |= dict.fromkeys(("op", "created", "commit", "version", "command", "peers"))


def test_bench_on_a_missing_gpu():
    if fl.cuda.is_available():
        pytest.skip("there is a GPU")
    assert fl.info()["cuda"]["message"] in here("bench sgemm --device cuda", 1).stderr


@pytest.mark.parametrize("option", ["--json", "--csv"])
def test_a_file_that_cannot_be_written_is_an_error(option, tmp_path):
    line = f"bench sgemm --quick --device cpu --shapes 32x32x32 --repeats 2 --kernels reference {option} nowhere/o"
    assert "nowhere" in here(line, 2, tmp_path).stderr


def test_a_full_disk_behind_one_file_leaves_the_others(tmp_path):
    line = "bench sgemm --quick --device cpu --shapes 8 --repeats 2 --kernels reference --json /dev/full --csv o.csv"
    assert "cannot write /dev/full: No space left" in here(line, 1, tmp_path).stderr
    assert "reference" in (tmp_path / "o.csv").read_text()


def test_output_into_a_closed_pipe_is_quiet():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "fastlinalg", "info"]
        done = subprocess.run(
            command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=patient(60), check=False
        )
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.parametrize("line", ["info", "selftest --quick --every 50 --device cpu --op transpose"])
def test_output_that_goes_nowhere(line):
    """Closed by who started the command: it does what it is asked for. On a full disk: it says so."""
    program = f"'{sys.executable}' -m fastlinalg {line}"
    assert completed("sh", "-c", f"{program} >&-").stderr == ""
    bench = f"'{sys.executable}' -m fastlinalg bench sgemm --quick --device cpu --kernels reference --shapes 8x8x8"
    assert "8x8x8" in completed("sh", "-c", f"{bench} 2>&-").stdout
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    done = completed("sh", "-c", f"{program} >/dev/full", status=1)
    assert done.stderr == f"fastlinalg {line.split()[0]}: error: No space left on device\n"
