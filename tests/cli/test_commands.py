"""``python -m fastlinalg``: what it prints, the files it writes, and its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import fastlinalg as fl
from fastlinalg._cases import cases
from fastlinalg.cli.selftest import sample
from support.command import command
from support.patience import patient
from support.rows import OPERATIONS


def test_version_and_help():
    assert command("--version").stdout.strip() == f"fastlinalg {fl.__version__}"
    text = command("--help").stdout
    for word in ("info", "selftest", "bench"):
        assert word in text
        assert "--" in command(f"{word} --help").stdout


def test_info():
    text = command("info").stdout
    assert fl.__version__ in text and fl.info()["cpu"]["isa"] in text
    if not fl.cuda.is_available():
        assert fl.info()["cuda"]["message"] in text


def test_info_shows_kernels_on_request_and_each_reason_once():
    rows = [row for op in OPERATIONS for row in fl.kernels(op)]
    reasons = {row.reason for row in rows if not row.available}
    short, full = command("info").stdout, command("info --kernels").stdout
    assert full.startswith(short)
    assert f"{sum(row.available for row in rows)} of {len(rows)} run here" in short
    for row in rows:
        assert row.blurb not in short and full.count(row.blurb) >= 1 and row.name in full
    for text in (short, full):
        assert all(text.count(f"not here: {reason}\n") == 1 for reason in reasons)
    assert len(full.splitlines()) == len(short.splitlines()) + 2 + len(rows)


def test_info_json():
    data = json.loads(command("info --json").stdout)
    assert data["version"] == fl.__version__ and data["cpu"] == fl.info()["cpu"]
    assert [row["name"] for row in data["kernels"]] == [row.name for op in OPERATIONS for row in fl.kernels(op)]


def test_selftest():
    text = command("selftest --quick --device cpu").stdout
    for op in OPERATIONS:
        for row in fl.kernels(op):
            if row.device == "cpu" and row.available:
                assert any(line.split()[:2] == [op, row.name] and "PASS" in line for line in text.splitlines()), row
    assert "FAIL" not in text


@pytest.mark.gpu
def test_selftest_on_the_gpu():
    assert "FAIL" not in command("selftest --quick --device cuda").stdout


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
    assert "no CUDA device" in command("selftest --device cuda", 1).stdout


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
    "": ("COMMAND", 2),
    "frobnicate": ("frobnicate", 2),
    "bench": ("op", 2),
    "bench dgemm": ("dgemm", 2),
    "bench sgemm --kernels nothing": ("nothing", 2),
    "bench sgemm --shapes 12y": ("12y", 2),
    "bench sgemm --shapes 0x3x4": ("0x3x4", 2),
    "bench all --shapes 64": ("--shapes", 2),
    "bench sgemm --shapes 3x4x5:XY": ("XY", 2),
    "bench sgemm --shapes 3x4x5*0": ("*0", 2),
    "bench sgemm --shapes 64 --random 3": ("--random", 2),
    "bench sgemm --random 0": ("at least 1", 2),
    "bench sgemm --random 99999999999": ("at most 2147483647", 2),
    "bench sgemm --threads 99999999999": ("at most 2147483647", 2),
    "bench sgemm --seed -1": ("at least 0", 2),
    "bench sgemm --limit nan": ("more than 0", 2),
    "bench sgemm --limit -1": ("more than 0", 2),
    "bench sgemm --kernels ,": ("must name something", 2),
    "bench sgemm --shapes 8 --plot o.nope": (".png", 2),
    "bench sgemm --shapes 8 --plot nosuffix": (".png", 2),
    "selftest --seed -1": ("at least 0", 2),
    "selftest --every 0": ("at least 1", 2),
    "bench sgemm --pause -1": ("between 0 and 10000", 2),
    "bench sgemm --pause x": ("--pause", 2),
    "bench host --pause 2": ("--pause", 2),
    "bench sgemm --precision double": ("double", 2),
    "bench host --against scipy": ("scipy", 2),
    "bench host --kernels reference": ("--kernels", 2),
    "bench host --shapes 3x4": ("3x4", 2),
    "bench host --shapes 3x4x5:G": ("3x4x5:G", 2),
    "bench sgemm --against blitz": ("blitz", 2),
    "bench sgemm --repeats 0": ("at least 1", 2),
    "bench sgemm --device tpu": ("tpu", 2),
    "selftest --op dgemm": ("dgemm", 2),
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_use(line):
    word, status = WRONG[line]
    assert word in command(line, status).stderr


def test_bench_on_a_missing_gpu():
    if fl.cuda.is_available():
        pytest.skip("there is a GPU")
    assert fl.info()["cuda"]["message"] in command("bench sgemm --device cuda", 1).stderr


@pytest.mark.parametrize("option", ["--json", "--csv"])
def test_a_file_that_cannot_be_written_is_an_error(option, tmp_path):
    line = f"bench sgemm --quick --device cpu --shapes 32x32x32 --repeats 2 --kernels reference {option} nowhere/o"
    assert "nowhere" in command(line, 2, tmp_path).stderr


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
    shell = f"'{sys.executable}' -m fastlinalg {line}"
    done = subprocess.run(
        f"{shell} >&-", shell=True, stderr=subprocess.PIPE, text=True, timeout=patient(60), check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    done = subprocess.run(
        f"{shell} >/dev/full", shell=True, stderr=subprocess.PIPE, text=True, timeout=patient(60), check=False
    )
    assert (done.returncode, done.stderr) == (1, f"fastlinalg {line.split()[0]}: error: No space left on device\n")
