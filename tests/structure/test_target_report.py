"""tools/target_report: what it reads out of the compiler's words, and where its targets come from."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest

from support.source_tree import ROOT, needs_source_tree

pytestmark = needs_source_tree

LOG = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Zfirst' for 'sm_75'
ptxas info    : Function properties for _Zfirst
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 4224 bytes smem, 472 bytes cmem[0]
ptxas info    : Compiling entry function '_Zsecond' for 'sm_75'
ptxas info    : Function properties for _Zsecond
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers, 472 bytes cmem[0]
"""


@pytest.fixture(scope="module")
def report():
    loader = SourceFileLoader("target_report", str(ROOT / "tools" / "target_report"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


def test_what_is_used_is_read(report):
    assert report.parse(LOG) == {
        "_Zfirst": {"registers": 64, "spill_bytes": 20, "stack_bytes": 16, "shared_bytes": 4224},
        "_Zsecond": {"registers": 4, "spill_bytes": 0, "stack_bytes": 0, "shared_bytes": 0},
    }


def test_a_line_for_each_file_and_target(report, tmp_path):
    rows = [report.Row("75", "a.cu", name, used, 0, 8 * used, 16, 100) for name, used in (("one", 3), ("two", 5))]
    report.write_csv([*rows, report.Row("80", "a.cu", "one", 7, 4, 8, 0, 50)], tmp_path / "report.csv")
    assert (tmp_path / "report.csv").read_text().splitlines() == [
        "target,file,kernels,registers,spills,stack,shared,code",
        "75,a.cu,2,5,0,40,16,200",
        "80,a.cu,1,7,4,8,0,50",
    ]


def test_targets_are_the_release_list(report):
    targets = report.release_targets()
    assert targets[0] == "75" and "90a" in targets and len(set(targets)) == len(targets)


def test_names_are_those_of_the_sources(report):
    plain = "void fl::(anonymous namespace)::rows_kernel<(int)4, fl::T<(bool)1> >(fl::SgemvArgs, float)"
    assert report.short_name(plain) == "rows_kernel<(int)4, T<(bool)1> >"
    assert report.short_name("fl::_GLOBAL__N__3678cdb4_17_x_cu_12d30579::probe()") == "probe"
