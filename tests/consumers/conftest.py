"""Projects that use the C and C++ package, configured and built where no CUDA toolkit can be found."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path

import pytest

from support import c_interface
from support.cpp_program import common_folder
from support.programs import completed
from support.source_tree import IS_THERE, ROOT

CUDA_VARIABLES = ("CUDACXX", "CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT", "FASTLINALG_CUDA")
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


@pytest.fixture(scope="session")
def environment():
    """An environment in which no CUDA toolkit can be found."""
    folders = os.environ["PATH"].split(os.pathsep)
    keep = [f for f in folders if not (Path(f) / "nvcc").exists() or (COMPILER and Path(COMPILER).parent == Path(f))]
    return {k: v for k, v in os.environ.items() if k not in CUDA_VARIABLES} | {"PATH": os.pathsep.join(keep)}


@pytest.fixture(scope="session")
def output_of(environment):
    """Run a command and return all it printed, with which the test fails if the command does."""

    def run(*command, cwd=None, **variables):
        env = environment | {name: str(value) for name, value in variables.items()}
        done = completed(*map(str, command), seconds=600, env=env, cwd=cwd)
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="session")
def cmake(output_of):
    """Configure and build with CMake from its Python package."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    cmake_package, nanobind, ninja = map(pytest.importorskip, ("cmake", "nanobind", "ninja"))
    program = Path(cmake_package.CMAKE_BIN_DIR) / "cmake"
    options = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={Path(ninja.BIN_DIR) / 'ninja'}", "-DCMAKE_BUILD_TYPE=Release"]
    options += [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind.cmake_dir()}"]

    def configure(source, folder, *definitions):
        return output_of(program, "-S", source, "-B", folder, *options, *definitions)

    def build(source, folder, *definitions):
        text = configure(source, folder, *definitions) + output_of(program, "--build", folder)
        assert "CUDA compiler" not in text
        return folder

    build.configure = configure
    build.install = lambda folder, prefix: output_of(program, "--install", folder, "--prefix", prefix)
    return build


# Each file of the library by itself, as nobody's wheel compiles them, but without the time that -O3 takes; nanobind, of
# which all extension modules need a copy, as one file.
EMBEDDER = """
cmake_minimum_required(VERSION 3.22)
project(embedder LANGUAGES C CXX)
add_subdirectory({root} fastlinalg)
target_compile_options(fastlinalg PRIVATE -O1)
add_subdirectory({root}/examples/embed_cmake embed_cmake)
set(CMAKE_UNITY_BUILD ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)
add_subdirectory({root}/examples/python_extension python_extension)
add_executable(consumer_c {root}/examples/embed_c/main.c)
target_link_libraries(consumer_c PRIVATE fastlinalg::static)
"""


@pytest.fixture(scope="session")
def embedded(cmake, tmp_path_factory):
    """The build of a project that embeds the sources: made once, and all tests of sources and prefixes use it."""
    if not IS_THERE:
        pytest.skip("needs the source tree")
    with common_folder(tmp_path_factory, "embedder") as source:
        (source / "CMakeLists.txt").write_text(EMBEDDER.format(root=ROOT))
        options = ("-DFASTLINALG_CUDA=OFF", "-DFASTLINALG_CBLAS=ON", "-DFASTLINALG_STATIC=ON")
        return cmake(source, source / "build", *options)


@pytest.fixture(scope="session")
def prefix(cmake, embedded, tmp_path_factory):
    """What that project installs."""
    folder = tmp_path_factory.mktemp("prefix")
    cmake.install(embedded, folder)
    return folder


# ---------------------------------------------------------------- the C interface
@pytest.fixture(scope="module")
def library():
    return c_interface.load()


@pytest.fixture
def memory():
    return (ctypes.c_float * 64)(*range(64))
