"""What tests of the thread pool have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cpp_program import build, built_once
from support.source_tree import ROOT

AROUND = ("threading", "per_thread", "call_watch", "cgroup", "fork", "../core/element")


@pytest.fixture(scope="session")
def around_the_pool(tmp_path_factory) -> Path:
    """One object of all that the pool's source is linked with."""

    def make(folder: Path, compiled: Path) -> Path:
        source = folder / "around.cpp"
        source.write_text("".join(f'#include "{ROOT}/cpp/runtime/{name}.cpp"\n' for name in AROUND))
        needed = ROOT / "cpp" / "runtime" / "threading.cpp"
        return build(compiled, needed, "-O1", "-pthread", f"-I{ROOT / 'cpp'}", "-c", source, seconds=300)

    return built_once(tmp_path_factory, "around_the_pool.o", make)
