"""What tools/mutants seeds: faults in code alone, one at a time, and of each kind."""

from __future__ import annotations

import sys

import pytest

from support.source_tree import ROOT, needs_source_tree

pytestmark = needs_source_tree

CODE = """
#define LESS(a, b) ((a) < (b))  // x < y
static_assert(1 < 2);
constexpr int MOST = 1 + 2;
__global__ void __launch_bounds__(THREADS, wide(8) > 1 ? 1 : 2) kernel();
  const int64_t last = std::min(m, 7) + wide<float>(m);  // "a" == b
  if (!ready && m <= last) return "m <= n";
  flag.store(1, std::memory_order_release);
  cp_async_wait<1>();
  ++last;
  return x ? m - n * k : std::max(a < b,
                                  c);
"""
FAULTS = {
    ("width", "const int64_t last = int32_t(std::min(m, 7) + wide<float>(m));"),
    ("bound", "const int64_t last = std::max(m, 7) + wide<float>(m);"),
    ("constant", "const int64_t last = std::min(m, 8) + wide<float>(m);"),
    ("constant", "const int64_t last = std::min(m, 6) + wide<float>(m);"),
    ("arithmetic", "const int64_t last = ((std::min(m, 7)) - (wide<float>(m)));"),
    ("logic", 'if (((!ready) || (m <= last))) return "m <= n";'),
    ("relation", 'if (!ready && ((m) < (last))) return "m <= n";'),
    ("relation", 'if (!ready && ((m) > (last))) return "m <= n";'),
    ("condition", 'if (!(!ready && m <= last)) return "m <= n";'),
    ("statement", ";"),
    ("constant", "flag.store(2, std::memory_order_release);"),
    ("constant", "flag.store(0, std::memory_order_release);"),
    ("synchronisation", ";"),
    ("constant", "cp_async_wait<2>();"),
    ("constant", "cp_async_wait<0>();"),
    ("arithmetic", "return x ? ((m) + (n * k)) : std::max(a < b,"),
    ("arithmetic", "return x ? m - ((n) / (k)) : std::max(a < b,"),
    ("relation", "return x ? m - n * k : std::max(((a) <= (b)),"),
    ("relation", "return x ? m - n * k : std::max(((a) >= (b)),"),
    ("bound", "return x ? m - n * k : std::min(a < b, c);"),
}
PYTHON = '''
"""a < b"""
import math
def stop(n=1 + 1):
    if a is not None and n == 1:  # a < b
        stop(n)
'''
PYTHON_FAULTS = {
    ("relation", "if (a is None) and n == 1:"),
    ("logic", "if (a is not None or n == 1):"),
    ("relation", "if a is not None and (n != 1):"),
    ("constant", "if a is not None and n == (2):"),
    ("condition", "if (not (a is not None and n == 1)):"),
    ("statement", "pass"),
}


def seeds(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import mutations

    monkeypatch.delitem(sys.modules, "mutations")
    return mutations


@pytest.mark.parametrize(
    ("name", "code", "faults"), [("a.cu", CODE, FAULTS), ("a.py", PYTHON, PYTHON_FAULTS)], ids=("CUDA", "Python")
)
def test_faults_are_in_code_alone(name, code, faults, monkeypatch):
    changed = {
        (found.kind, found.of(code).splitlines()[found.lines(code)[0] - 1].split("  //")[0].split("  #")[0].strip())
        for found in seeds(monkeypatch).mutations(name, code)
    }
    assert changed == faults


def test_a_fault_is_chosen_when_the_program_runs(monkeypatch):
    tool = seeds(monkeypatch)
    code = "  if (a < b) stop();\n  ++last;\n"
    chosen = {
        1: next(found for found in tool.mutations("a.cpp", code) if found.kind == "relation"),
        2: next(found for found in tool.mutations("a.cpp", code) if found.statement),
    }
    assert tool.seeded("a.cpp", code, chosen, "mutant.h") == (
        '#include "mutant.h"\n#line 1\n'
        "  if ((::fl_mutants::mutant<1>() ? ((a) <= (b)) : a < b)) stop();\n"
        "  if (::fl_mutants::mutant<2>()) {} else ++last;\n"
    )
