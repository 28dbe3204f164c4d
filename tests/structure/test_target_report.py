"""tools/target_report: what it reads out of the compiler's words, and where its targets come from."""

from __future__ import annotations

import shutil
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


def test_targets_are_the_release_list(report):
    targets = report.release_targets()
    assert targets[0] == "75" and "90a" in targets and len(set(targets)) == len(targets)


@pytest.mark.skipif(not shutil.which("c++filt"), reason="needs binutils")
def test_names_are_those_of_the_sources(report):
    mangled = "_ZN2fl36_GLOBAL__N__3fef2a21_4_m_cu_1cd3eae411rows_kernelILi4ENS0_1TILi1ELb1EEEEEvPfT0_"
    assert report.short_name(mangled) == "rows_kernel<4, T<1, true> >"
    assert report.short_name("_ZN2fl36_GLOBAL__N__3fef2a21_4_m_cu_1cd3eae45plainEPf") == "plain"
