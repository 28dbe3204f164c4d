"""The C and C++ packages, as a wheel, an install prefix and sources serve them; and the examples that use them."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

import fastlinalg as fl
from support.cpp_program import weak_symbols
from support.requirements import mostly_exhaustive
from support.source_tree import ROOT

EXAMPLES = ROOT / "examples"
# The source tree has no lib/ folder; an installed package without one is broken, and fails.
needs_installed = pytest.mark.skipif(
    not Path(fl.get_cmake_dir()).exists() and ROOT / "python" in Path(fl.get_cmake_dir()).parents,
    reason="fastlinalg is imported from its source tree: install it to test the C++ package",
)


@pytest.fixture
def check_consumer(output_of):
    def check(program):
        text = output_of(program)
        assert f"fastlinalg {fl.__version__}" in text
        assert "GFLOP/s" in text and "error " in text and "lda must be at least 2" in text

    return check


@pytest.fixture
def check_c(output_of, tmp_path):
    """The C program, made with pkg-config."""

    def check(libraries: Path, **variables):
        for program in ("make", "pkg-config", "cc"):
            if not shutil.which(program):
                pytest.skip(f"needs {program}")
        folder = tmp_path / "embed_c"
        shutil.copytree(EXAMPLES / "embed_c", folder, dirs_exist_ok=True)
        output_of("make", "-C", folder, "clean", "consumer", PKG_CONFIG_PATH=libraries / "pkgconfig", **variables)
        assert "no such kernel" in output_of(folder / "consumer")
        return folder / "consumer"

    return check


def needed(output_of, program: Path) -> str:
    return output_of("readelf", "-d", program)


# ---------------------------------------------------------------- from a wheel
@needs_installed
def test_wheel(cmake, check_consumer, check_c, tmp_path):
    folder = cmake(EXAMPLES / "embed_cmake", tmp_path / "build", f"-Dfastlinalg_DIR={fl.get_cmake_dir()}")
    check_consumer(folder / "consumer")
    cmake.install(folder, tmp_path / "installed")
    check_consumer(tmp_path / "installed" / "bin" / "consumer")
    check_c(Path(fl.get_include()).parent / "lib")


@needs_installed
def test_wheel_may_be_moved(cmake, check_consumer, tmp_path):
    package = Path(fl.get_include()).parent
    for folder in ("include", "lib"):
        shutil.copytree(package / folder, tmp_path / "moved" / folder)
    options = f"-DCMAKE_PREFIX_PATH={tmp_path / 'moved'}"
    check_consumer(cmake(EXAMPLES / "embed_cmake", tmp_path / "build", options) / "consumer")


RUN_EXTENSION = """
import numpy as np, fastlinalg as fl, row_distances
a, b = (np.random.default_rng(i).standard_normal((5 - i, 3), dtype=np.float32) for i in range(2))
assert np.allclose(row_distances.squared_distances(a, b), ((a[:, None] - b) ** 2).sum(-1), atol=1e-5)
with fl.num_threads(3):
    assert row_distances.get_num_threads() == 3
try:
    row_distances.squared_distances(a, b[:, :2].copy())
except ValueError as error:
    assert "rows of a have 3 elements, those of b 2" in str(error)
assert len({line.split()[-1] for line in open("/proc/self/maps") if "libfastlinalg" in line}) == 1
print("distances are right")
"""


@pytest.mark.exhaustive
@needs_installed
def test_wheel_of_an_extension_module(output_of, tmp_path):
    """Another package, whose module finds the library of this one: loaded already, or beside it."""
    pytest.importorskip("scikit_build_core")
    source = tmp_path / "source"
    shutil.copytree(EXAMPLES / "python_extension", source)
    site = tmp_path / "site"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index")
    as_one = "CMAKE_UNITY_BUILD=ON;CMAKE_UNITY_BUILD_BATCH_SIZE=0"
    output_of(*pip, "--target", site, source, SKBUILD_CMAKE_DEFINE=as_one)
    assert "are right" in output_of(sys.executable, "-c", RUN_EXTENSION, PYTHONPATH=site, cwd=tmp_path)

    module = next((site / "row_distances").glob("_core*.so"))
    load = f"import ctypes; ctypes.CDLL({str(module)!r})"
    program = (sys.executable, "-c", load)
    with pytest.raises(AssertionError, match=r"libfastlinalg\.so"):
        output_of(*program, cwd=tmp_path)  # the two packages are not in one folder
    (site / "fastlinalg").symlink_to(Path(fl.get_include()).parent)
    output_of(*program, cwd=tmp_path)


@needs_installed
def test_load_library():
    library = ctypes.CDLL(fl.load_library())
    library.fl_version.restype = ctypes.c_char_p
    assert library.fl_version().decode() == fl.__version__
    with fl.num_threads(3):
        assert library.fl_get_num_threads() == 3, "one library for Python and C"


@needs_installed
def test_the_program_of_the_page(output_of, tmp_path):
    page = (ROOT / "docs" / "reference" / "c.md").read_text()
    program, commands = re.search(r"```cpp\n(.*?)```\n+```sh\n(.*?)```", page, re.DOTALL).groups()
    if not all(map(shutil.which, ("pkg-config", "c++"))):
        pytest.skip("needs pkg-config and a C++ compiler")
    (tmp_path / "program.cpp").write_text(program)
    commands = re.sub(r"\bpython\b", sys.executable, commands)
    output_of("sh", "-e", "-c", f"{commands}\n./program", cwd=tmp_path)
    assert len(program.splitlines()) <= 10


# ---------------------------------------------------------------- from source
@pytest.mark.exhaustive
def test_source(embedded, check_consumer, output_of):
    check_consumer(embedded / "embed_cmake" / "consumer")
    assert "no such kernel" in output_of(embedded / "consumer_c")
    assert "libfastlinalg" not in needed(output_of, embedded / "consumer_c"), "it is the static library's"


@pytest.mark.exhaustive
@pytest.mark.skipif(not shutil.which("nm"), reason="needs nm")
def test_objects_of_instruction_sets_define_no_shared_inline_functions(embedded):
    found = [path for path in embedded.rglob("*.o") if path.parent.name in ("avx2", "avx512", "amx", "neon")]
    assert len(found) >= 2
    assert {path.parent.name + "/" + path.name: weak for path in found if (weak := weak_symbols(path))} == {}


@pytest.mark.parametrize("build_type", mostly_exhaustive(["", "MinSizeRel", "RelWithDebInfo"]))
def test_fetched_sources_are_optimised_whatever_the_build_type(cmake, tmp_path, build_type):
    """Ours only, with one flag, and with none where the build type has it."""
    options = ("-DFASTLINALG_CUDA=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DCMAKE_BUILD_TYPE={build_type}")
    search = "-DCMAKE_DISABLE_FIND_PACKAGE_fastlinalg=ON"
    cmake.configure(EXAMPLES / "embed_cmake", tmp_path / "build", *options, search)
    flags = {True: set(), False: set()}
    for entry in json.loads((tmp_path / "build" / "compile_commands.json").read_text()):
        if entry["file"].endswith("/cpp/kernels/portable/tiles.cpp"):  # a model, with -O1 whatever the build type
            continue
        found = [word for word in entry["command"].split() if word.startswith("-O")]
        flags[EXAMPLES in Path(entry["file"]).parents].add(" ".join(found))
    own = {"": "", "MinSizeRel": "-Os", "RelWithDebInfo": "-O2"}[build_type]
    ours = own if own == "-O2" else f"{own} -O3".strip()
    assert flags == {True: {own}, False: {ours}}


def test_flags_of_an_embedding_project_leave_exceptions_and_arithmetic(cmake, output_of, tmp_path):
    options = (
        "-DFASTLINALG_CUDA=OFF",
        "-DFASTLINALG_CBLAS=ON",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        "-DCMAKE_DISABLE_FIND_PACKAGE_fastlinalg=ON",
    )
    flags = "-DCMAKE_CXX_FLAGS=-fno-exceptions -ffast-math -Ofast -funsafe-math-optimizations"
    cmake.configure(EXAMPLES / "embed_cmake", tmp_path / "build", *options, flags)
    for entry in json.loads((tmp_path / "build" / "compile_commands.json").read_text()):
        ours = EXAMPLES not in Path(entry["file"]).parents
        words = [word for word in entry["command"].split() if re.match("-f(no-)?(exceptions|fast-math)", word)]
        assert words == ["-fno-exceptions", "-ffast-math"] + ["-fexceptions", "-fno-fast-math"] * ours
    build = (tmp_path / "build" / "build.ninja").read_text()
    links = re.findall(r"LANGUAGE_COMPILE_FLAGS = (.*)\n *LINK_FLAGS = (-shared .*)", build)
    assert len(links) == 2
    for flags in links:
        commands = output_of(entry["command"].split()[0], *" ".join(flags).split(), "-###", "-xc++", "/dev/null")
        assert "crtfastmath" not in commands, "loading the library does not flush the subnormal numbers of a program"


# ---------------------------------------------------------------- from a prefix
@pytest.mark.exhaustive
def test_prefix(cmake, prefix, check_consumer, check_c, output_of, tmp_path):
    library = prefix / "lib" / "libfastlinalg.so"
    short = ".".join(fl.__version__.split(".")[:2])
    assert library.is_symlink() and library.resolve().name == f"libfastlinalg.so.{fl.__version__}"
    assert f"[libfastlinalg.so.{short}]" in needed(output_of, library)
    folder = cmake(EXAMPLES / "embed_cmake", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    check_consumer(folder / "consumer")
    cmake.install(folder, tmp_path / "elsewhere")
    check_consumer(tmp_path / "elsewhere" / "bin" / "consumer")
    check_c(prefix / "lib")
    assert "libfastlinalg" not in needed(output_of, check_c(prefix / "lib", STATIC=1))


@pytest.mark.exhaustive
def test_prefix_with_its_programs_may_be_moved(prefix, check_consumer, tmp_path):
    shutil.copytree(prefix, tmp_path / "moved", symlinks=True)
    check_consumer(tmp_path / "moved" / "bin" / "consumer")


LOAD_MODULE = """
import importlib.util, sys
import numpy as np
spec = importlib.util.spec_from_file_location("_core", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
a = np.eye(3, dtype=np.float32)
assert module.squared_distances(a, a).tolist() == [[0, 2, 2], [2, 0, 2], [2, 2, 0]]
"""


@pytest.mark.exhaustive
def test_extension_modules_without_the_wheel(cmake, prefix, output_of, tmp_path):
    """One that was built with the library, and one against a prefix: neither needs the Python package."""
    options = ("-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0")
    folder = cmake(EXAMPLES / "python_extension", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", *options)
    cmake.install(folder, tmp_path / "installed")
    for root in (prefix, tmp_path / "installed"):
        output_of(sys.executable, "-c", LOAD_MODULE, next((root / "row_distances").glob("_core*.so")))


@needs_installed
def test_what_is_not_a_target_is_refused(cmake, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\n"
        "project(wrong LANGUAGES CXX)\n"
        "find_package(fastlinalg CONFIG REQUIRED)\n"
        "fastlinalg_set_rpath(no_target)\n"
    )
    with pytest.raises(AssertionError, match="there is no target 'no_target'"):
        cmake.configure(tmp_path, tmp_path / "build", f"-Dfastlinalg_DIR={fl.get_cmake_dir()}")


WITHOUT = {
    "Linux": ("-DCMAKE_SYSTEM_NAME=FreeBSD", "for Linux, on x86-64 and AArch64; this build is for FreeBSD"),
    "a compiler": (
        "-DCMAKE_CXX_COMPILER_FORCED=ON;-DCMAKE_CXX_COMPILER_ID_RUN=ON;-DCMAKE_CXX_COMPILER_ID=GNU;"
        "-DCMAKE_CXX_COMPILER_VERSION=9.4",
        "for GCC 12 or newer; .* is GCC 9.4. Name a newer one in CXX",
    ),
    "nanobind": ("-DFASTLINALG_PYTHON=ON;-Dnanobind_DIR=nowhere;-DSKBUILD=2", "needs nanobind: pip install nanobind"),
}


@pytest.mark.parametrize("lacking", WITHOUT)
def test_a_build_says_what_it_lacks(cmake, tmp_path, lacking):
    definitions, message = WITHOUT[lacking]
    with pytest.raises(AssertionError) as failure:
        cmake.configure(ROOT, tmp_path / "build", "-DFASTLINALG_CUDA=OFF", *definitions.split(";"))
    assert re.search(message.replace(" ", r"\s+"), str(failure.value))


@needs_installed
def test_an_older_cmake_builds_programs_and_is_refused_for_the_module(output_of, tmp_path):
    """That of the system, where it is between the oldest that is allowed and the oldest for the Python module."""
    program = shutil.which("cmake", path="/usr/bin:/usr/local/bin")
    version = program and tuple(map(int, re.findall(r"\d+", output_of(program, "--version"))[:2]))
    if not version or not (3, 22) <= version < (3, 26):
        pytest.skip("no CMake from 3.22 to 3.25 on this machine")
    output_of(program, "-S", EXAMPLES / "embed_cmake", "-B", tmp_path / "a", f"-Dfastlinalg_DIR={fl.get_cmake_dir()}")
    with pytest.raises(AssertionError, match=r"needs CMake 3\.26 or\s+newer"):
        output_of(program, "-S", ROOT, "-B", tmp_path / "b", "-DFASTLINALG_CUDA=OFF", "-DFASTLINALG_PYTHON=ON")


def test_the_conda_recipe_is_of_this_package():
    recipe, project = (ROOT / "conda" / "recipe.yaml").read_text(), (ROOT / "pyproject.toml").read_text()
    assert f'version: "{fl.__version__}"' in recipe
    for name in ("scikit-build-core", "nanobind", "numpy"):
        wanted = re.search(rf'"{name}(>=[^"]+)"', project)[1]
        assert f"- {name} {wanted}\n" in recipe, f"{name}{wanted} is what pyproject.toml asks for"


def test_versions_agree():
    header = (Path(fl.get_include()) / "fastlinalg" / "fastlinalg.h").read_text()
    assert ".".join(re.findall(r"#define FL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)) == fl.__version__
