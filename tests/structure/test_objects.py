"""What is compiled for an instruction set stays in the objects of that instruction set."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from support.requirements import EXHAUSTIVE
from support.source_tree import ROOT, SOURCES, label, needs_source_tree

pytestmark = needs_source_tree


def isa_sources():
    """Each file that is compiled with flags of its folder, most of them an instruction set's, and those flags."""
    text = (ROOT / "CMakeLists.txt").read_text() if SOURCES else ""
    folders = re.findall(r'set_source_files_properties\(\$\{fl_(\w+)\} PROPERTIES\s+COMPILE_OPTIONS "([^"]+)"\)', text)
    return [
        pytest.param(path, flags.split(";"), id=label(path), marks=[] if path.stem == "transpose" else [EXHAUSTIVE])
        for folder, flags in folders
        for path in sorted((ROOT / "cpp" / "kernels" / folder).glob("*.cpp"))
    ]


def test_an_instruction_set_is_taken_with_all_that_it_is_compiled_for():
    wanted = {flag[2:] for source in isa_sources() for flag in source.values[1] if re.match(r"-m(avx|fma)", flag)}
    asked = re.findall(r'__builtin_cpu_supports\("(\w+)"\)', (ROOT / "cpp" / "device" / "hardware.cpp").read_text())
    assert len(wanted) == 6 and wanted == set(asked)


@pytest.mark.parametrize("path, flags", isa_sources())
def test_isa_objects_define_no_shared_inline_functions(path, flags, tmp_path):
    """An inline function is one weak symbol with its copy for the baseline: the linker may keep the one from here."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if not compiler or not shutil.which("nm"):
        pytest.skip("needs a C++ compiler and nm")
    target = tmp_path / "object.o"
    command = [
        compiler,
        "-std=c++20",
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        *flags,
        f"-I{ROOT / 'cpp'}",
        "-c",
        str(path),
    ]
    built = subprocess.run([*command, "-o", str(target)], capture_output=True, text=True, check=False)
    if built.returncode and re.search(r"unrecogni[sz]ed|unknown.*option|unsupported option", built.stderr):
        pytest.skip("this compiler has no such instruction set")
    assert built.returncode == 0, built.stderr
    symbols = subprocess.run(
        ["nm", "-C", "--defined-only", str(target)], capture_output=True, text=True, check=True
    ).stdout
    weak = [line for line in symbols.splitlines() if re.match(r"[0-9a-f]* *[WVu] ", line)]
    assert not weak, "\n".join(weak)
