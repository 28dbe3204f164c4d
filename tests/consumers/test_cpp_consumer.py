"""The C and C++ packages, as an installed copy, an install prefix and an embedding project serve them, without CUDA."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import fastlinalg as fl
from support.patience import patient
from support.source_tree import ROOT

CONSUMER = ROOT / "examples" / "cpp_consumer"
CUDA_VARIABLES = ("CUDACXX", "CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT", "FASTLINALG_CUDA")
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
# The source tree has no lib/ folder; an installed package without one is broken, and fails.
needs_installed = pytest.mark.skipif(
    not Path(fl.get_cmake_dir()).exists() and ROOT / "python" in Path(fl.get_cmake_dir()).parents,
    reason="fastlinalg is imported from its source tree: install it to test the C++ package",
)


@pytest.fixture(scope="module")
def environment():
    """An environment in which no CUDA toolkit can be found."""
    folders = os.environ["PATH"].split(os.pathsep)
    keep = [f for f in folders if not (Path(f) / "nvcc").exists() or (COMPILER and Path(COMPILER).parent == Path(f))]
    return {k: v for k, v in os.environ.items() if k not in CUDA_VARIABLES} | {"PATH": os.pathsep.join(keep)}


@pytest.fixture(scope="module")
def cmake(environment):
    """Run CMake from its Python package; the test fails with all it printed if it does."""
    import cmake as cmake_package
    import ninja

    program = Path(cmake_package.CMAKE_BIN_DIR) / "cmake"
    generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={Path(ninja.BIN_DIR) / 'ninja'}", "-DCMAKE_BUILD_TYPE=Release"]

    def run(*args):
        return output_of(environment, program, *args)

    def configure(source, folder, *definitions):
        return run("-S", source, "-B", folder, *generator, *definitions)

    def build(source, folder, *definitions):
        text = configure(source, folder, *definitions) + run("--build", folder)
        assert "CUDA compiler" not in text
        return folder

    build.configure = configure
    build.install = lambda folder, prefix: run("--install", folder, "--prefix", prefix)
    return build


def output_of(environment, *command):
    done = subprocess.run(
        [str(part) for part in command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=patient(600),
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def check_consumer(environment, folder):
    text = output_of(environment, folder / "consumer")
    assert f"fastlinalg {fl.__version__}" in text
    assert "error " in text and "lda must be at least 2" in text
    if (folder / "consumer_c").exists():
        assert "no such kernel" in output_of(environment, folder / "consumer_c")


@needs_compiler
@needs_installed
def test_installed_package(cmake, environment, tmp_path):
    folder = cmake(CONSUMER, tmp_path, f"-Dfastlinalg_DIR={fl.get_cmake_dir()}")
    assert (folder / "consumer_c").exists()
    check_consumer(environment, folder)


@needs_compiler
@needs_installed
def test_installed_package_may_be_moved(cmake, environment, tmp_path):
    package = Path(fl.get_include()).parent
    for folder in ("include", "lib"):
        shutil.copytree(package / folder, tmp_path / "moved" / folder)
    check_consumer(environment, cmake(CONSUMER, tmp_path / "build", f"-DCMAKE_PREFIX_PATH={tmp_path / 'moved'}"))


@needs_compiler
def test_embedded_and_install_prefix(cmake, environment, tmp_path):
    """One build serves both: a project that embeds the sources, and the prefix it installs them to."""
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.26)\n"
        "project(embedder LANGUAGES CXX)\n"
        f"add_subdirectory({ROOT} fastlinalg)\n"
        f"add_executable(consumer {CONSUMER}/main.cpp)\n"
        "target_link_libraries(consumer PRIVATE fastlinalg::fastlinalg)\n"
    )
    build = cmake(tmp_path, tmp_path / "embedded", "-DFASTLINALG_CUDA=OFF", "-DFASTLINALG_INSTALL=ON")
    check_consumer(environment, build)

    prefix = tmp_path / "prefix"
    cmake.install(build, prefix)
    library = prefix / "lib" / "libfastlinalg.so"
    assert library.is_symlink() and library.resolve().name == f"libfastlinalg.so.{fl.__version__}"
    check_consumer(environment, cmake(CONSUMER, tmp_path / "installed", f"-DCMAKE_PREFIX_PATH={prefix}"))


@needs_compiler
@pytest.mark.parametrize("build_type", ["", "Debug", "MinSizeRel", "RelWithDebInfo", "Release"])
def test_fetched_sources_are_optimised_whatever_the_build_type(cmake, tmp_path, build_type):
    """Ours only, with one flag, and with none where the build type has it."""
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.26)\n"
        "project(embedder LANGUAGES CXX)\n"
        "include(FetchContent)\n"
        f"FetchContent_Declare(fastlinalg SOURCE_DIR {ROOT})\n"
        "FetchContent_MakeAvailable(fastlinalg)\n"
        f"add_executable(consumer {CONSUMER}/main.cpp)\n"
        "target_link_libraries(consumer PRIVATE fastlinalg::fastlinalg)\n"
    )
    options = ("-DFASTLINALG_CUDA=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DCMAKE_BUILD_TYPE={build_type}")
    cmake.configure(tmp_path, tmp_path / "build", *options)
    flags = {True: set(), False: set()}
    for entry in json.loads((tmp_path / "build" / "compile_commands.json").read_text()):
        found = [word for word in entry["command"].split() if word.startswith("-O")]
        flags[CONSUMER in Path(entry["file"]).parents].add(" ".join(found))
    own = {"": "", "Debug": "", "MinSizeRel": "-Os", "RelWithDebInfo": "-O2", "Release": "-O3"}[build_type]
    ours = own if own in ("-O2", "-O3") else f"{own} -O3".strip()
    assert flags == {True: {own}, False: {ours}}


# ---------------------------------------------------------------- the C interface, called without a compiler
FL_INVALID_VALUE, FL_CUDA_ERROR = 1, 3


class Options(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("kernel", ctypes.c_char_p),
        ("precision", ctypes.c_int),
        ("device", ctypes.c_char_p),
        ("stream", ctypes.c_void_p),
        ("device_memory", ctypes.c_int),
    )


def options(**fields):
    return ctypes.byref(Options(**{"struct_size": ctypes.sizeof(Options)} | fields))


def types(signature):
    letters = {"i": ctypes.c_int, "l": ctypes.c_int64, "f": ctypes.c_float, "p": ctypes.c_void_p}
    return [letters[letter] for letter in signature.replace(" ", "")]


@pytest.fixture(scope="module")
def library():
    lib = ctypes.CDLL(str(Path(fl.get_cmake_dir()).parents[1] / "libfastlinalg.so"))
    lib.fl_last_error.restype = lib.fl_version.restype = ctypes.c_char_p
    lib.fl_sgemm.argtypes = types("ii lll f pl pl f pl p")
    lib.fl_sgemm_batched_strided.argtypes = types("ii lll f pll pll f pll l p")
    lib.fl_sgemv.argtypes = types("i ll f pl pl f pl p")
    lib.fl_transpose.argtypes = types("ll pl pl p")
    lib.fl_load_tuning.argtypes = (ctypes.c_char_p,)
    return lib


@pytest.fixture
def memory():
    return (ctypes.c_float * 64)(*range(64))


def gemm_arguments(memory, **changes):
    """A valid fl_sgemm call, 2 x 3 times 3 x 2, with some arguments replaced."""
    a, b, c = (ctypes.byref(memory, 4 * offset) for offset in (0, 8, 16))
    call = {"trans_a": 0, "trans_b": 0, "m": 2, "n": 2, "k": 3, "alpha": 1, "a": a, "lda": 3, "b": b, "ldb": 2}
    return list((call | {"beta": 0, "c": c, "ldc": 2, "options": None} | changes).values())


@needs_installed
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": -1}, "m must be at least 0, got -1"),
        ({"n": -(2**63)}, "n must be at least 0"),
        ({"k": -3}, "k must be at least 0, got -3"),
        ({"trans_a": 111}, "trans_a must be 0 or 1, got 111"),
        ({"lda": 2}, "lda must be at least 3"),
        ({"trans_b": 1}, "ldb must be at least 3"),
        ({"ldc": 0}, "ldc must be at least 2"),
        ({"a": None}, "a is NULL"),
        ({"b": 4098}, "b is not aligned to 4 bytes"),
        ({"c": None}, "c is NULL"),
        ({"m": 2**40, "lda": 2**40}, "a would be larger than the address space"),
        ({"options": options(kernel=b"nonsense")}, "unknown sgemm kernel 'nonsense'; the closest that run here: "),
        ({"options": options(kernel=b"")}, "kernel must be a name or NULL"),
        ({"options": options(kernel=b"nonsense"), "m": 0}, "unknown sgemm kernel 'nonsense'"),
        ({"options": options(device=b"tpu")}, "got 'tpu'"),
        ({"options": options(precision=7)}, "precision must be FL_ACCURATE or FL_STRICT, got 7"),
        ({"options": options(struct_size=0)}, "start from FL_OPTIONS_INIT"),
        ({"options": options(device=b"cpu", device_memory=1)}, "device_memory needs a CUDA device"),
    ],
)
def test_c_interface_refuses(library, memory, changes, message):
    before = list(memory)
    assert library.fl_sgemm(*gemm_arguments(memory, **changes)) == FL_INVALID_VALUE
    text = library.fl_last_error().decode()
    assert text.startswith("fl_sgemm: ") or "'" in text
    assert message in text
    assert list(memory) == before


@needs_installed
def test_c_interface_accepts_nothing_to_do(library, memory):
    assert library.fl_sgemm(*gemm_arguments(memory, m=0, a=None, c=None)) == 0
    assert library.fl_sgemm(*gemm_arguments(memory, n=0, b=None, c=None)) == 0
    assert library.fl_sgemm(*gemm_arguments(memory, m=0, n=0, k=0, a=None, b=None, c=None)) == 0
    assert library.fl_sgemv(0, 0, 5, 1, None, 5, memory, 1, 0, None, 1, None) == 0
    assert library.fl_transpose(0, 5, None, 5, None, 1, None) == 0


@needs_installed
def test_c_interface_batches(library, memory):
    """Row vectors [l, l+1] times one matrix; the results side by side in one row."""
    result = (ctypes.c_float * 6)()
    call = (0, 0, 1, 2, 2, 1, memory, 2, 1, memory, 2, 0, 0, result, 2)
    assert library.fl_sgemm_batched_strided(*call, 2, 3, None) == 0
    assert list(result) == [2, 3, 4, 7, 6, 11]  # [[0, 1], [2, 3]] is the matrix
    assert library.fl_sgemm_batched_strided(*call, 1, 3, None) == FL_INVALID_VALUE
    assert b"would overlap with stride_c 1" in library.fl_last_error()
    assert library.fl_sgemm_batched_strided(*call, -2, 3, None) == FL_INVALID_VALUE


@needs_installed
def test_c_interface_walks_vectors_backwards(library, memory):
    """[[0, 1, 2], [3, 4, 5]] @ [100, 10, 1], the last element of the result first."""
    x, y = (ctypes.c_float * 3)(1, 10, 100), (ctypes.c_float * 4)()
    assert library.fl_sgemv(0, 2, 3, 1, memory, 3, x, -1, 0, y, -3, None) == 0
    assert list(y) == [345, 0, 0, 12]
    assert library.fl_sgemv(0, 2, 3, 1, memory, 3, x, 0, 0, y, 1, None) == FL_INVALID_VALUE
    assert b"incx must not be 0" in library.fl_last_error()


@needs_installed
def test_c_interface_transposes_in_place(library):
    matrix = (ctypes.c_float * 12)(*range(12))  # 3 x 3 in rows of 4
    assert library.fl_transpose(3, 3, matrix, 4, matrix, 4, None) == 0
    assert list(matrix) == [0, 4, 8, 3, 1, 5, 9, 7, 2, 6, 10, 11]
    for m, n, lda, ldb in ((2, 3, 4, 4), (3, 3, 4, 3)):
        assert library.fl_transpose(m, n, matrix, lda, matrix, ldb, None) == FL_INVALID_VALUE
        assert b"a and b are the same memory, so the matrix must be square" in library.fl_last_error()


@needs_installed
def test_c_interface_loads_a_table(library, tmp_path):
    path = tmp_path / "table.json"
    assert library.fl_load_tuning(str(path).encode()) == 0, "no file is no table"
    path.write_text('{"format": 1, "version": "0.0.1", "devices": []}')
    assert library.fl_load_tuning(str(path).encode()) == FL_INVALID_VALUE
    assert b"made by version 0.0.1" in library.fl_last_error()
    path.write_text(json.dumps({"format": 1, "version": fl.__version__, "devices": []}))
    assert library.fl_load_tuning(str(path).encode()) == 0
    assert library.fl_load_tuning(None) == 0, "FASTLINALG_TUNE is off in the tests"


@needs_installed
def test_c_interface_without_a_device(library, memory):
    status = library.fl_sgemm(*gemm_arguments(memory, options=options(device=b"cuda:99")))
    assert status == FL_CUDA_ERROR
    assert library.fl_last_cuda_error() != 0 and library.fl_last_error()


@needs_installed
def test_one_library_for_python_and_c(library):
    assert library.fl_version().decode() == fl.__version__
    with fl.num_threads(3):
        assert library.fl_get_num_threads() == 3
    for number, op in enumerate(("sgemm", "sgemv", "transpose")):
        assert library.fl_kernel_count(number) == len(fl.kernels(op))
    assert library.fl_kernel_count(3) == -1


@needs_installed
def test_exports_no_cuda_symbol(library):
    for name in ("cudaMalloc", "cudaGetDeviceCount", "cudaLaunchKernel", "__cudaRegisterFatBinary", "cuInit"):
        assert not hasattr(library, name)
