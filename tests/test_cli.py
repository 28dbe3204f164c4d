"""``python -m fastlinalg``: what it prints, the files it writes, and its exit status."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import os
import shlex
import subprocess
import sys

import pytest

import fastlinalg as fl
from rows import OPERATIONS

needs_bench = pytest.mark.skipif(importlib.util.find_spec("rich") is None, reason="needs the extra fastlinalg[bench]")
needs_plot = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="needs the extra fastlinalg[bench]"
)
SMALL = {"sgemm": "33x34x35,64x64x64", "sgemv": "100x32,64x17", "transpose": "64x48,33x65"}


def command(line: str, status: int = 0, cwd=None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "fastlinalg", *shlex.split(line)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=cwd,
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    assert done.returncode == status, f"{line}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_version_and_help():
    assert command("--version").stdout.strip() == f"fastlinalg {fl.__version__}"
    text = command("--help").stdout
    for word in ("info", "selftest", "bench"):
        assert word in text
        assert "--" in command(f"{word} --help").stdout


def test_info():
    text = command("info").stdout
    for op in OPERATIONS:
        for row in fl.kernels(op):
            assert row.name in text and row.blurb in text
    assert fl.__version__ in text and fl.info()["cpu"]["isa"] in text
    if not fl.cuda.is_available():
        assert fl.info()["cuda"]["message"] in text


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


@needs_bench
@pytest.mark.parametrize("op", OPERATIONS)
def test_bench_files(op, tmp_path):
    line = f"bench {op} --quick --device cpu --shapes {SMALL[op]} --repeats 3 --json o.json --csv o.csv"
    text = command(line, cwd=tmp_path).stdout
    names = [row.name for row in fl.kernels(op) if row.device == "cpu" and row.available]
    assert all(name in text for name in names)

    data = json.loads((tmp_path / "o.json").read_text())
    assert data["op"] == op and data["version"] == fl.__version__ and data["machine"]["peak_gflops"] > 0
    assert {row["kernel"] for row in data["rows"]} >= set(names)
    for row in data["rows"]:
        assert 0 < row["min_us"] <= row["mean_us"] <= row["max_us"] and row["min_us"] == min(row["samples_us"])
        assert row["error"] is None or row["error"]["ok"]
        if op == "sgemm":
            m, n, k = (row["shape"][letter] for letter in "mnk")
            assert row["gflops_mean"] == pytest.approx(2e-3 * m * n * k / row["mean_us"])
            assert row["percent_of_peak_best"] > 0

    with open(tmp_path / "o.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == len(data["rows"])
    assert [row["kernel"] for row in table] == [row["kernel"] for row in data["rows"]]
    assert all(float(row["mean_us"]) > 0 for row in table)


@needs_bench
@needs_plot
def test_bench_plot_is_a_png(tmp_path):
    line = f"bench sgemm --quick --device cpu --shapes {SMALL['sgemm']} --repeats 3 --kernels reference,dispatch"
    command(f"{line} --plot o.png", cwd=tmp_path)
    pictures = list(tmp_path.glob("*.png"))
    assert pictures
    for picture in pictures:
        data = picture.read_bytes()
        assert data.startswith(b"\x89PNG\r\n\x1a\n") and data.rstrip().endswith(b"IEND\xaeB`\x82") and len(data) > 5000


@needs_bench
def test_bench_against_numpy(tmp_path):
    command(
        "bench sgemm --quick --device cpu --shapes 64x64x64 --repeats 3 --against numpy --json o.json", cwd=tmp_path
    )
    rows = json.loads((tmp_path / "o.json").read_text())["rows"]
    assert {row["kernel"]: row["peer"] for row in rows}["numpy"] is True
    assert all("numpy" in row["ratios"] for row in rows if not row["peer"])


@needs_bench
def test_bench_after_pauses(tmp_path):
    line = "bench sgemm --quick --device cpu --shapes 64x64x64 --repeats 3 --kernels dispatch --pause 2.5 --json o.json"
    command(line, cwd=tmp_path)
    (row,) = json.loads((tmp_path / "o.json").read_text())["rows"]
    assert row["method"] == "single calls after 2.5 ms" and len(row["samples_us"]) == 3


@needs_bench
def test_bench_of_random_shapes(tmp_path):
    """The same seed draws the same shapes, and the summary is that of the rows."""
    line = "bench sgemv --quick --device cpu --random 4 --repeats 2 --kernels dispatch --against numpy --json o.json"
    documents = []
    for seed in (1, 1, 2):
        text = command(f"{line} --seed {seed}", cwd=tmp_path).stdout
        documents.append(json.loads((tmp_path / "o.json").read_text()))
    shapes = [[(row["shape"], row["trans"], row["row_pads"], row["offsets"]) for row in d["rows"]] for d in documents]
    assert shapes[0] == shapes[1] != shapes[2] and len(shapes[0]) == 8

    (summary,) = documents[2]["summary"]
    ratios = [row["ratios"]["numpy"] for row in documents[2]["rows"] if not row["peer"]]
    assert summary["shapes"] == len(ratios) == 4 and summary["minimum"] == min(ratios)
    assert summary["geometric_mean"] == pytest.approx(math.prod(ratios) ** 0.25)
    assert f"geometric mean {summary['geometric_mean']:.3f}" in text


@needs_bench
@needs_plot
def test_bench_plots_many_shapes(tmp_path):
    command("bench sgemm --quick --device cpu --random 21 --repeats 1 --kernels dispatch --plot o.png", cwd=tmp_path)
    assert (tmp_path / "o.png").read_bytes().startswith(b"\x89PNG")


@needs_bench
def test_bench_against_strict(tmp_path):
    line = "bench sgemm --quick --device cpu --shapes 40x30x20*3:NT,33x20x10:TT --repeats 2 --kernels dispatch"
    command(f"{line} --against strict,numpy --json o.json", cwd=tmp_path)
    rows = json.loads((tmp_path / "o.json").read_text())["rows"]
    assert [row["kernel"] for row in rows] == 2 * ["dispatch", "strict", "numpy"]
    assert {row["trans"]: row["batch"] for row in rows} == {"NT": 3, "TT": 1}
    assert all("strict" in row["ratios"] for row in rows if row["kernel"] != "strict")
    assert all(row["error"]["ok"] for row in rows)


@needs_bench
@pytest.mark.gpu
def test_bench_of_random_shapes_on_the_gpu(tmp_path):
    """Rows apart and unaligned operands, ours and the peers'."""
    peers = [name for name in ("torch", "cupy") if importlib.util.find_spec(name)]
    peers += ["cublas"] if peers else []  # they bring it
    for op in OPERATIONS:
        line = f"bench {op} --quick --device cuda --random 6 --repeats 2 --kernels dispatch --json o.json"
        command(f"{line} --against {','.join(['strict', *peers])}", cwd=tmp_path)
        rows = json.loads((tmp_path / "o.json").read_text())["rows"]
        assert all(row["error"]["ok"] for row in rows if row["error"])
        assert {row["kernel"] for row in rows} >= {"dispatch", *peers}


@needs_bench
@pytest.mark.gpu
def test_bench_of_strict_rows_on_the_gpu(tmp_path):
    line = "bench sgemm --quick --device cuda --precision strict --shapes 256x256x128 --repeats 2 --json o.json"
    command(line, cwd=tmp_path)
    measured = {row["kernel"] for row in json.loads((tmp_path / "o.json").read_text())["rows"]}
    rows = [row for row in fl.kernels("sgemm") if row.device == "cuda" and row.available]
    assert measured == {"dispatch"} | {row.name for row in rows if row.strict}


@needs_bench
@pytest.mark.gpu
def test_bench_on_the_gpu(tmp_path):
    command("bench sgemm --quick --device cuda --shapes 256x256x128 --repeats 3 --json o.json", cwd=tmp_path)
    rows = json.loads((tmp_path / "o.json").read_text())["rows"]
    available = {row.name for row in fl.kernels("sgemm") if row.device == "cuda" and row.available}
    assert {row["kernel"] for row in rows} >= available


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
    "bench sgemm --pause -1": ("between 0 and 10000", 2),
    "bench sgemm --pause x": ("--pause", 2),
    "bench sgemm --precision double": ("double", 2),
    "bench sgemm --against blitz": ("blitz", 2),
    "bench sgemm --repeats 0": ("at least 1", 2),
    "bench sgemm --device tpu": ("tpu", 2),
    "selftest --op dgemm": ("dgemm", 2),
}


@needs_bench
@pytest.mark.parametrize("line", WRONG)
def test_wrong_use(line):
    word, status = WRONG[line]
    assert word in command(line, status).stderr


@needs_bench
def test_bench_on_a_missing_gpu():
    if fl.cuda.is_available():
        pytest.skip("there is a GPU")
    assert fl.info()["cuda"]["message"] in command("bench sgemm --device cuda", 1).stderr


@needs_bench
@pytest.mark.parametrize("option", ["--json", "--csv"])
def test_a_file_that_cannot_be_written_is_an_error(option, tmp_path):
    line = f"bench sgemm --quick --device cpu --shapes 32x32x32 --repeats 2 --kernels reference {option} nowhere/o"
    done = subprocess.run(
        [sys.executable, "-m", "fastlinalg", *line.split()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode not in (0, None) and "nowhere" in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_output_into_a_closed_pipe_is_quiet():
    shell = f"{shlex.quote(sys.executable)} -m fastlinalg info | head -n 1"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, timeout=60, check=False)
    assert (
        done.stdout.startswith("fastlinalg")
        and "Traceback" not in done.stderr
        and "Exception ignored" not in done.stderr
    )
