"""benchmarks/counters.py with an ``ncu`` that only answers: what it makes of Nsight Compute's tables."""

from __future__ import annotations

import csv
import importlib.util
import os
import sys

import pytest

from support.source_tree import ROOT, needs_source_tree

PROGRAM = ROOT / "benchmarks" / "counters.py"
pytestmark = [
    needs_source_tree,
    pytest.mark.skipif(os.name != "posix", reason="the stand-in is a script"),
]

# One row of units, then the launches: a mark before each call, two launches for fp16x2.
STAND_IN = """#!{python}
import csv, sys
metrics = sys.argv[sys.argv.index("--metrics") + 1].split(",")
print("==PROF== Connected to process 1")
table = csv.writer(sys.stdout, quoting=csv.QUOTE_ALL)
table.writerow(["ID", "Kernel Name", *metrics])
table.writerow(["", "", *("unit" for _ in metrics)])
called = sys.argv[sys.argv.index("--launch") + 1:]
for name in called[:{calls}]:
    launches = ["void fl::transpose_naive_kernel<64, 8>(fl::TransposeArgs)"]
    launches += ["void fl::operand_split_kernel<Fp16>(SplitPlan)"] if name == "fp16x2" else []
    launches += [f"void fl::(anonymous namespace)::{{name}}_kernel<1, (int)2>(fl::SgemmArgs)"]
    for number, launch in enumerate(launches):
        table.writerow([number, launch, *("1,234.5" for _ in metrics)])
print("==PROF== Disconnected")
sys.exit({status})
"""


@pytest.fixture
def counters(tmp_path, monkeypatch):
    def run(*arguments: str, calls: int = 9, status: int = 0) -> int:
        stand_in = tmp_path / "ncu"
        stand_in.write_text(STAND_IN.format(python=sys.executable, calls=calls, status=status))
        stand_in.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        monkeypatch.setattr(sys, "argv", [str(PROGRAM), *arguments])
        spec = importlib.util.spec_from_file_location("counters", PROGRAM)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.main()

    return run


def test_a_row_for_every_launch_of_every_kernel(counters, tmp_path, capsys):
    file = tmp_path / "counters.csv"
    assert counters("sgemm", "64x64x64", "--kernels", "naive,fp16x2", "--csv", str(file)) == 0
    with open(file) as opened:
        rows = list(csv.DictReader(opened))
    assert [(row["kernel"], row["launch"]) for row in rows] == [
        ("naive", "naive_kernel"),
        ("fp16x2", "operand_split_kernel"),
        ("fp16x2", "fp16x2_kernel"),
    ]
    assert {row["time_ns"] for row in rows} == {"1234.5"} and rows[0]["shape"] == "64x64x64"
    assert capsys.readouterr().out.count("tensor_pipe_pct=1234.5") == 3


def test_a_call_that_ncu_has_not_seen(counters, capsys):
    assert counters("sgemm", "64x64x64", "--kernels", "naive,fp16x2", calls=1) == 1
    assert "2 kernels were called, ncu saw 1 calls" in capsys.readouterr().err


def test_ncu_that_fails(counters):
    with pytest.raises(SystemExit, match="ncu ended with 3"):
        counters("sgemm", "64x64x64", "--kernels", "naive", status=3)
