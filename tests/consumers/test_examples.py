"""The examples run, and their results are right: each checks its own."""

from __future__ import annotations

import csv
import re
import shutil
import sys

import pytest

import fastlinalg as fl
from support.programs import completed
from support.source_tree import ROOT, needs_source_tree

EXAMPLES = ROOT / "examples"
NEEDS = {"digits_neighbours": ("sklearn",), "image_transpose": ("sklearn", "PIL")}
pytestmark = needs_source_tree


def run(name: str, *arguments: str) -> str:
    return completed(sys.executable, EXAMPLES / f"{name}.py", *arguments).stdout


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", NEEDS)
def test_host_examples(name, device, tmp_path):
    for module in NEEDS[name]:
        pytest.importorskip(module)
    folder = ("--to", str(tmp_path)) if name == "image_transpose" else ()
    assert run(name, "--device", device, *folder)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_products_in_jit(device, monkeypatch):
    """JAX takes the first platform that there is, or the one that it is told."""
    pytest.importorskip("jax")
    if device == "cpu":
        monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert f"on {device}:0" in run("jax_jit/matmul")


def test_a_product_of_files():
    """Of Zarr where it is installed."""
    pytest.importorskip("distributed")
    said = run("dask_files", "-n", "1500", "--memory", "1 GiB", "--device", "cpu")
    assert "in chunks of 750 x 750" in said and "against float64" in said
    said = completed(sys.executable, EXAMPLES / "dask_files.py", "--memory", "256 MiB", status=2).stderr
    assert "--memory must be at least 1.00 GiB for 2 workers, got 256 MiB" in said


@pytest.mark.parametrize("arguments", [
    ("--device", "cpu", "--workers", "1"),
    pytest.param((), marks=pytest.mark.gpu),
    pytest.param(("--device", "cuda:all"), marks=pytest.mark.gpu),
])  # fmt: skip
def test_a_product_on_workers_with_a_gpu_each_or_all(arguments):
    """On the CPU it is one worker that has been given the resource."""
    pytest.importorskip("distributed")
    assert "error of rows" in run("dask_gpus", "-n", "1000", *arguments)


@pytest.mark.gpu
def test_a_graph_of_calls_with_cuda_core():
    pytest.importorskip("cuda.core")
    assert "results agree with NumPy" in run("cuda_graph")


def test_the_graph_example_where_there_is_no_device():
    if fl.cuda.is_available():
        pytest.skip("there is one")
    assert "no CUDA device" in run("cuda_graph")


@pytest.mark.gpu
def test_the_fall_backs_of_accurate_products():
    said = run("fall_backs").splitlines()
    answers = [line.split("computed by ")[1] for line in said if "computed by" in line]
    assert answers == [
        "two fp16 terms",
        "three bf16 terms because of the range of the operands",
        "plain float32 because of the range of the operands",
        "plain float32 because of NaN or infinite numbers",
    ]


def test_instructions_of_the_tensor_core_example_are_there():
    """It is compiled where there is a GPU alone."""
    used = re.findall(r"ptx::(\w+)", (EXAMPLES / "tensor_cores" / "tensor_cores.cu").read_text())
    headers = "".join(path.read_text() for path in (ROOT / "cuda" / "kernels" / "common").glob("*.cuh"))
    assert used and {name for name in used if not re.search(rf"\b{name}\(", headers)} == set()


@pytest.mark.gpu
def test_tensor_cores_idea_by_idea(tmp_path):
    """Two fp16 terms gain nothing on positive data while the tensor cores add them up, and all of float32 promoted."""
    if fl.devices()[0]["compute_capability"] != "9.0" or not shutil.which("nvcc"):
        pytest.skip("needs nvcc and a device of compute capability 9.0")
    program = tmp_path / "tensor_cores"
    options = ["-std=c++20", "-O3", "-gencode", "arch=compute_90a,code=sm_90a", f"-I{ROOT}", f"-I{ROOT / 'cpp'}"]
    completed("nvcc", *options, EXAMPLES / "tensor_cores" / "tensor_cores.cu", "-o", program, seconds=300)
    rows = list(csv.DictReader(completed(program).stdout.splitlines()))
    assert len(rows) == 20
    for row in rows:
        error = float(row["error (norm)"])
        assert (error < 3e-7) == row["what"].endswith("promoted") and error < 1e-4, row


def test_the_fall_backs_where_there_is_no_device():
    if fl.cuda.is_available():
        pytest.skip("there is one")
    assert "does not run here" in run("fall_backs")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_training_in_float32(device, tmp_path):
    pytest.importorskip("torch", minversion="2.10")
    curves = tmp_path / "curves.csv"
    said = run(
        "train_float32", "--device", device, "--steps", "4", "--width", "32", "--batch", "1", "--csv", str(curves)
    )
    assert "each run learns" in said and len(curves.read_text().splitlines()) == 5
    assert "\nfastlinalg (PyTorch's) " in said or device == "cuda"
