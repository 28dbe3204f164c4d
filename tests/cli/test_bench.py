"""``python -m fastlinalg bench``: what it measures, prints and writes."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import re
import statistics

import pytest

import fastlinalg as fl
from support.command import here, needs_plot
from support.rows import OPERATIONS

SMALL = {"sgemm": "33x34x35,64x64x64", "sgemv": "100x32,64x17", "transpose": "64x48,33x65"}


@pytest.mark.parametrize("op", OPERATIONS)
def test_bench_files(op, tmp_path):
    line = f"bench {op} --quick --device cpu --shapes {SMALL[op]} --repeats 3 --json o.json --csv o.csv"
    text = here(line, cwd=tmp_path).stdout
    names = [row.name for row in fl.kernels(op) if row.device == "cpu" and row.available]
    assert all(name in text for name in names)

    data = json.loads((tmp_path / "o.json").read_text())
    assert (tmp_path / "o.json").read_text().count('\n{"op":') == len(data["rows"]) + len(data["summary"])
    assert data["op"] == op and data["version"] == fl.__version__ and data["machine"]["peak_gflops"] > 1
    assert {row["kernel"] for row in data["rows"]} >= set(names)
    for row in data["rows"]:
        assert row["median_us"] == statistics.median(row["samples_us"]) > 0
        assert row["error"] is None or row["error"]["ok"]
        if op == "sgemm":
            m, n, k = (row["shape"][letter] for letter in "mnk")
            assert row["gflops"] == pytest.approx(2e-3 * m * n * k / row["median_us"], rel=2e-5)
            share = 100 * row["gflops"] / data["machine"]["peak_gflops"]
            assert row["percent_of_peak"] == pytest.approx(share, rel=2e-5)

    with open(tmp_path / "o.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == len(data["rows"])
    assert [row["kernel"] for row in table] == [row["kernel"] for row in data["rows"]]
    assert all(float(row["median_us"]) > 0 for row in table)
    assert "median" in text and " mean " not in text.replace("geometric mean", "")


@needs_plot
@pytest.mark.parametrize(
    "what", [f"--shapes {SMALL['sgemm']} --kernels reference,dispatch", "--random 21 --kernels dispatch"]
)
def test_bench_plot_is_a_png(what, tmp_path):
    here(f"bench sgemm --quick --device cpu --repeats 1 --plot o.png {what}", cwd=tmp_path)
    (picture,) = tmp_path.glob("*.png")
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and data.rstrip().endswith(b"IEND\xaeB`\x82") and len(data) > 5000


def test_bench_of_random_shapes(tmp_path):
    """The same seed draws the same shapes, and the summary is that of the rows."""
    line = "bench sgemv --quick --device cpu --random 4 --repeats 2 --kernels dispatch --against numpy --json o.json"
    documents = []
    for seed in (1, 1, 2):
        text = here(f"{line} --seed {seed}", cwd=tmp_path).stdout
        documents.append(json.loads((tmp_path / "o.json").read_text()))
    shapes = [[(row["shape"], row["trans"], row["row_pads"], row["offsets"]) for row in d["rows"]] for d in documents]
    assert shapes[0] == shapes[1] != shapes[2] and len(shapes[0]) == 8

    (summary,) = documents[2]["summary"]
    ratios = [row["ratios"]["numpy"] for row in documents[2]["rows"] if not row["peer"]]
    assert summary["shapes"] == len(ratios) == 4 and summary["minimum"] == min(ratios)
    assert summary["geometric_mean"] == pytest.approx(math.prod(ratios) ** 0.25, rel=2e-5)
    shown = float(re.search(r"geometric mean ([\d.]+)", text)[1])
    assert shown == pytest.approx(summary["geometric_mean"], abs=6e-4)


def test_bench_of_data_as_people_have_them(tmp_path):
    """By names, or all of them; files say which, and are read back so. Operands are what the names say."""
    from fastlinalg.bench import data, operands, problems, read

    line = "bench sgemm --quick --device cpu --shapes 20x30x40:TN --repeats 1 --kernels dispatch --json o.json --data"
    for wanted, found in (("fft,one_hot", ("fft", "one_hot")), ("all", data.NAMES)):
        text = here(f"{line} {wanted}", cwd=tmp_path).stdout
        assert [row.problem.data for row in read.read(str(tmp_path / "o.json")).rows] == list(found)
        assert "20x30x40 one_hot TN" in text
    hot = operands.Operands(problems.Problem("sgemm", 20, 30, 40, trans_a=True, data="one_hot"), 0)
    assert hot.a.shape == (40, 20) and (hot.a.sum(0) == 1).all() and hot.b.all()


@needs_plot
@pytest.mark.parametrize("op", ["sgemm", "transpose"])
def test_what_the_library_chooses_stands_out_in_plots(op, tmp_path):
    """Thick and in one colour, whatever else there is; that the machine was busy is said too."""
    from fastlinalg.bench import curves, plot, read

    line = f"bench {op} --quick --device cpu --shapes {SMALL[op]} --repeats 1 --against numpy --json o.json"
    here(line, cwd=tmp_path)
    document = read.read(str(tmp_path / "o.json"))
    document.header["machine"]["busy"] = "other programs keep 3.0 of 4 CPUs busy"
    ((_, figure),) = plot.figures(document)
    assert figure.get_suptitle() == "The machine was not free: other programs keep 3.0 of 4 CPUs busy"
    names = {row.kernel: row.peer for row in document.rows}
    assert len({curves.colours(names)[name] for name in names}) == len(names)
    if op == "sgemm":
        drawn = {line.get_color(): line.get_linewidth() for line in figure.axes[0].lines}
        assert max(drawn, key=drawn.get) == curves.FIXED["dispatch"]


def test_bench_against_strict(tmp_path):
    line = "bench sgemm --quick --device cpu --shapes 40x30x20*3:NT,33x20x10:TT --repeats 2 --kernels dispatch"
    here(f"{line} --against strict,numpy --json o.json", cwd=tmp_path)
    rows = json.loads((tmp_path / "o.json").read_text())["rows"]
    assert [row["kernel"] for row in rows] == 2 * ["dispatch", "strict", "numpy"]
    assert {row["trans"]: row["batch"] for row in rows} == {"NT": 3, "TT": 1}
    assert all("strict" in row["ratios"] for row in rows if row["kernel"] != "strict")
    assert all(row["error"]["ok"] for row in rows)


@needs_plot
def test_bench_of_a_matrix_times_its_own_transpose(tmp_path):
    line = (
        "bench sgemm --quick --device cpu --shapes 40x40x20:AAT,33x33x50*2:ATA --repeats 2 --kernels dispatch,reference"
    )
    text = here(f"{line} --against numpy,strict --json o.json", cwd=tmp_path).stdout
    assert "40x40x20 AAT" in text and "33x33x50*2 ATA" in text
    rows = json.loads((tmp_path / "o.json").read_text())["rows"]
    assert {row["trans"] for row in rows} == {"NT", "TN"}
    assert all(row["own"] and row["error"]["ok"] for row in rows)
    here("report o.json -o o.html", cwd=tmp_path)
    assert "40x40x20 AAT" in (tmp_path / "o.html").read_text()
    assert ":AAT or :ATA behind squares" in here("bench sgemm --shapes 40x41x20:AAT", cwd=tmp_path, status=2).stderr


HOST_MODES = {(result, pause) for result in ("fresh", "reused", "out") for pause in (0.0, 2.0)}


@needs_plot
def test_bench_host(tmp_path):
    """Each contender in each mode, checked; a large result without pauses."""
    line = "bench host --quick --device cpu --shapes 40,33x20x10:F,21x22x23:strided,4096x4096x8 --repeats 2"
    text = here(f"{line} --against numpy --json o.json --csv o.csv --plot o.png", cwd=tmp_path).stdout
    assert "WRONG" not in text and "x numpy" in text
    data = json.loads((tmp_path / "o.json").read_text())
    seen: dict[tuple[str, str], set] = {}
    for row in data["rows"]:
        assert row["op"] == "host" and row["error"]["ok"] and row["link_us"] is None
        assert ("numpy" in row["ratios"]) != row["peer"]
        shape = "x".join(str(row["shape"][letter]) for letter in "mnk")
        seen.setdefault((f"{shape} {row['layout']}", row["kernel"]), set()).add((row["result"], row["pause_ms"]))
    assert {contender for _, contender in seen} == {"accurate", "strict", "numpy"}
    for (shape, _), modes in seen.items():
        assert modes == ({m for m in HOST_MODES if not m[1]} if "4096" in shape else HOST_MODES)
    assert {shape for shape, _ in seen} == {"40x40x40 C", "33x20x10 F", "21x22x23 strided", "4096x4096x8 C"}
    assert {line["kernel"] for line in data["summary"]} == {
        f"{p}, {r}" for p in ("accurate", "strict") for r in ("fresh", "out")
    }
    assert (tmp_path / "o.png").read_bytes().startswith(b"\x89PNG") and (tmp_path / "o.csv").stat().st_size > 1000


def test_bench_host_says_what_devices_it_wants(tmp_path):
    for wrong in ("0", "0,0", "0,nine", "all,0"):
        said = here(f"bench host --quick --devices {wrong}", cwd=tmp_path, status=2).stderr
        assert "--devices must be 'all' or two or more numbers of GPUs" in said and repr(wrong) in said


@pytest.mark.gpu
@pytest.mark.gpu2
def test_bench_host_on_several_devices(tmp_path):
    line = "bench host --quick --shapes 700 --repeats 2 --precision strict --devices 0,1 --json o.json"
    here(line, cwd=tmp_path)
    rows = json.loads((tmp_path / "o.json").read_text())["rows"]
    assert {"strict", "strict cuda:0,cuda:1"} <= {row["kernel"] for row in rows}
    assert all(row["error"]["ok"] for row in rows)


def test_bench_host_notices_a_fault(python):
    """A contender whose results are wrong in one mode only."""
    program = (
        "import fastlinalg as fl, sys\n"
        "from fastlinalg.cli import main\n"
        "matmul = fl.matmul\n"
        "def faulty(a, b, out=None, **options):\n"
        "    result = matmul(a, b, out, **options)\n"
        "    if out is not None: result[-1:] = 1\n"
        "    return result\n"
        "fl.matmul = faulty\n"
        "sys.exit(main('bench host --quick --device cpu --shapes 16 --repeats 1'.split()))\n"
    )
    assert "WRONG" in python(program, status=1)


@pytest.mark.gpu
def test_bench_host_on_the_gpu(tmp_path):
    peers = [name for name in ("torch", "cupy") if importlib.util.find_spec(name)]
    line = f"bench host --quick --shapes 100,256x300x200:strided --repeats 2 --against {','.join(['numpy', *peers])}"
    here(f"{line} --json o.json", cwd=tmp_path)
    data = json.loads((tmp_path / "o.json").read_text())
    assert {row["kernel"] for row in data["rows"]} == {
        "accurate",
        "strict",
        "accurate cuda",
        "strict cuda",
        "numpy",
        *peers,
    }
    assert all(row["error"]["ok"] and row["link_us"] > 0 for row in data["rows"])
    assert len(data["link"]) == 2 and all(line["both_us"] > 0 for line in data["link"])


@pytest.mark.gpu
def test_bench_of_random_shapes_on_the_gpu(tmp_path):
    """Padded rows and unaligned operands, ours and the peers'."""
    peers = [name for name in ("torch", "cupy") if importlib.util.find_spec(name)]
    for op in OPERATIONS:
        against = [*peers, "cublas"] if "torch" in peers and op != "transpose" else peers  # PyTorch calls it
        line = f"bench {op} --quick --device cuda --random 6 --repeats 2 --kernels dispatch --json o.json"
        here(f"{line} --against {','.join(['strict', *against])}", cwd=tmp_path)
        rows = json.loads((tmp_path / "o.json").read_text())["rows"]
        assert all(row["error"]["ok"] for row in rows if row["error"])
        assert {row["kernel"] for row in rows} >= {"dispatch", *against}


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["accurate", "strict"])
def test_bench_on_the_gpu(precision, tmp_path):
    line = f"bench sgemm --quick --device cuda --precision {precision} --shapes 256x256x128 --repeats 2 --json o.json"
    here(line, cwd=tmp_path)
    measured = {row["kernel"] for row in json.loads((tmp_path / "o.json").read_text())["rows"]}
    rows = [row for row in fl.kernels("sgemm") if row.device == "cuda" and row.available]
    assert measured == {"dispatch"} | {row.name for row in rows if row.strict or precision == "accurate"}
