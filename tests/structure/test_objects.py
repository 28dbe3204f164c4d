"""What is compiled for an instruction set stays in the objects of that instruction set."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from support.cpp_program import weak_symbols
from support.source_tree import ROOT, SOURCES, label, needs_source_tree

pytestmark = needs_source_tree


def isa_sources():
    """Each file that is compiled with flags of its folder, most of them an instruction set's, and those flags."""
    text = (ROOT / "CMakeLists.txt").read_text() if SOURCES else ""
    folders = re.findall(r'set_source_files_properties\(\$\{fl_(\w+)\} PROPERTIES\s+COMPILE_OPTIONS "([^"]+)"\)', text)
    return [
        pytest.param(path, flags.split(";"), id=label(path))
        for folder, flags in folders
        for path in sorted((ROOT / "cpp" / "kernels" / folder).glob("*.cpp"))
    ]


def test_an_instruction_set_is_taken_with_all_that_it_is_compiled_for():
    wanted = {flag[2:] for source in isa_sources() for flag in source.values[1] if re.match(r"-m(avx|f)", flag)}
    asked = re.findall(r'__builtin_cpu_supports\("(\w+)"\)', (ROOT / "cpp" / "device" / "hardware.cpp").read_text())
    assert len(wanted) == 7 and wanted == set(asked)


# One for each set: consumers/test_embedding.py looks at all of those that a build has made.
@pytest.mark.parametrize("path, flags", [source for source in isa_sources() if source.values[0].stem == "transpose"])
def test_isa_objects_define_no_shared_inline_functions(path, flags, tmp_path):
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
    assert not weak_symbols(target)
