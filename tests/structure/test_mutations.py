"""What tools/mutants seeds: faults in code alone, one at a time, and of each kind."""

from __future__ import annotations

import sys

import pytest

from support.source_tree import ROOT, needs_source_tree

pytestmark = needs_source_tree

CODE = """
#define LESS(a, b) ((a) < (b))  // x < y
static_assert(1 < 2);
  const int64_t last = std::min(m, 7) + wide<float>(m);  // "a" == b
  if (!ready && m <= last) return "m <= n";
  flag.store(1, std::memory_order_release);
  cp_async_wait<1>();
  ++last;
"""
FAULTS = {
    ("width", "const int32_t last = std::min(m, 7) + wide<float>(m);"),
    ("bound", "const int64_t last = std::max(m, 7) + wide<float>(m);"),
    ("constant", "const int64_t last = std::min(m, 8) + wide<float>(m);"),
    ("constant", "const int64_t last = std::min(m, 6) + wide<float>(m);"),
    ("arithmetic", "const int64_t last = std::min(m, 7) - wide<float>(m);"),
    ("negation", 'if (ready && m <= last) return "m <= n";'),
    ("logic", 'if (!ready || m <= last) return "m <= n";'),
    ("relation", 'if (!ready && m < last) return "m <= n";'),
    ("relation", 'if (!ready && m > last) return "m <= n";'),
    ("condition", 'if (!(!ready && m <= last)) return "m <= n";'),
    ("statement", ";"),
    ("constant", "flag.store(2, std::memory_order_release);"),
    ("constant", "flag.store(0, std::memory_order_release);"),
    ("memory order", "flag.store(1, std::memory_order_relaxed);"),
    ("synchronisation", ";"),
    ("constant", "cp_async_wait<2>();"),
    ("constant", "cp_async_wait<0>();"),
}
PYTHON = '''
"""a < b"""
    if a is not None and n == 1:  # a < b
        stop(n)
'''
PYTHON_FAULTS = {
    ("negation", "if a is None and n == 1:"),
    ("logic", "if a is not None or n == 1:"),
    ("relation", "if a is not None and n != 1:"),
    ("constant", "if a is not None and n == 2:"),
    ("constant", "if a is not None and n == 0:"),
    ("statement", "pass"),
}


@pytest.mark.parametrize(
    ("name", "code", "faults"), [("a.cu", CODE, FAULTS), ("a.py", PYTHON, PYTHON_FAULTS)], ids=("CUDA", "Python")
)
def test_faults_are_in_code_alone(name, code, faults, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from mutations import mutations

    monkeypatch.delitem(sys.modules, "mutations")
    changed = {
        (mutation.kind, mutation.of(code).splitlines()[mutation.line - 1].split("  //")[0].split("  #")[0].strip())
        for mutation in mutations(name, code)
    }
    assert changed == faults
