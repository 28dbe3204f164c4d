"""What tests of the thread pool have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cpp_program import build, common_folder
from support.source_tree import ROOT

AROUND = ("threading", "per_thread", "call_watch", "cgroup", "fork", "../core/element")


@pytest.fixture(scope="session")
def around_the_pool(tmp_path_factory) -> Path:
    """One object of all that the pool's source is linked with."""
    with common_folder(tmp_path_factory, "around_the_pool") as folder:
        compiled, source = folder / "around.o", folder / "around.cpp"
        if not compiled.exists():
            source.write_text("".join(f'#include "{ROOT}/cpp/runtime/{name}.cpp"\n' for name in AROUND))
            needed = ROOT / "cpp" / "runtime" / "threading.cpp"
            build(compiled, needed, "-O1", "-pthread", f"-I{ROOT / 'cpp'}", "-c", source, seconds=300)
        return compiled
