"""Each request for memory or a thread fails once: a call says so or does without, and the next one works."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import fastlinalg as fl
from support.cpp_program import loaded_library
from support.programs import completed
from support.requirements import missing
from support.source_tree import ROOT

SOURCE = Path(__file__).parent / "allocation_failures.cpp"
HEADERS = ROOT / "cpp" / "include"


def test_every_request_that_can_fail(tmp_path):
    compiler = shutil.which(os.environ.get("CC", "cc"))  # which links no C++ runtime
    headers = next((folder for folder in (HEADERS, Path(fl.get_include())) if folder.exists()), None)
    if not compiler or not headers:
        missing("simulated", f"needs a compiler and the headers: {compiler}, {headers}")
    library, program = loaded_library(), tmp_path / "failures"
    command = [compiler, "-xc++", "-std=c++17", "-fno-exceptions", "-fno-threadsafe-statics", f"-I{headers}"]
    command += [SOURCE, "-rdynamic", "-ldl", "-o", program]
    command += ["-Wl,--unresolved-symbols=ignore-all", "-Wl,-z,lazy"]  # the program loads the library by itself
    completed(*command)
    assert completed(program, library).stdout == "all right\n"
