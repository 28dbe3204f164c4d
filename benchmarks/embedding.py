"""Whether a project that embeds the library gets the speed of the wheel: each example from wheel, prefix and source.

    python -m venv env && env/bin/pip install fastlinalg-*.whl cmake ninja nanobind scikit-build-core
    env/bin/python benchmarks/embedding.py --json benchmarks/results/embedding/zen4.json

builds `examples/embed_cmake`, `embed_c` and `python_extension` and a program of a CBLAS in all ways that they have, and
runs them and `fl.matmul` by turns, with a thread each: 1024 cubed, the best of all, by the processor's time but for
`embed_cmake`, which looks at the clock. The table is what the docs show
(docs/reference/c.md); `--table FILE` prints it of a file. Needs a C++ compiler, make and pkg-config.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WAYS = ("wheel", "prefix", "source")
N = 1024

EMBEDDER = """
cmake_minimum_required(VERSION 3.26)
project(embedder LANGUAGES C CXX)
add_subdirectory({root} fastlinalg)
add_subdirectory({root}/examples/embed_cmake embed_cmake)
add_subdirectory({root}/examples/python_extension python_extension)
add_executable(consumer_c {root}/examples/embed_c/main.c)
target_link_libraries(consumer_c PRIVATE fastlinalg::static)
add_executable(relinked relinked.c)
target_link_libraries(relinked PRIVATE fastlinalg::cblas)
"""

CBLAS_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
int main(void) {
  const int n = 1024;
  float *a = malloc(4ul * n * n), *c = malloc(4ul * n * n);
  double best = 1e9;
  int i;
  for (i = 0; i < n * n; ++i) a[i] = (float)(i % 97) - 48;
  for (i = 0; i < 10; ++i) {
    const clock_t start = clock();
    double seconds;
    cblas_sgemm(101, 111, 111, n, n, n, 1, a, n, a, n, 0, c, n);
    seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (seconds < best) best = seconds;
  }
  printf("%d cubed by cblas_sgemm: %g GFLOP/s\\n", n, 2e-9 * n * n * n / best);
  return 0;
}
"""

TIMED_IN_PYTHON = """
import sys, time
import numpy as np
{setup}
a, b = (np.random.default_rng(i).standard_normal(({n}, {n}), dtype=np.float32) for i in range(2))
best = 1e9
for _ in range(10):
    start = time.process_time()
    {call}
    best = min(best, time.process_time() - start)
print("{n} cubed by {name}:", 2e-9 * {n}**3 / best, "GFLOP/s")
"""
LOAD_MODULE = """
import importlib.util
spec = importlib.util.spec_from_file_location("_core", sys.argv[1])
row_distances = importlib.util.module_from_spec(spec)
spec.loader.exec_module(row_distances)
"""


def python_program(setup: str, call: str, name: str) -> str:
    return TIMED_IN_PYTHON.format(setup=setup, call=call, name=name, n=N)


def output_of(*command: object, **variables: object) -> str:
    environment = os.environ | {key: str(value) for key, value in variables.items()}
    done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Builds:
    """Every program in every way, as a command."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.prefix = work / "prefix"
        self.commands: dict[tuple[str, str], list[object]] = {}

    def cmake(self, source: Path, folder: Path, *definitions: str) -> Path:
        import cmake
        import nanobind
        import ninja

        program = Path(cmake.CMAKE_BIN_DIR) / "cmake"
        options = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={Path(ninja.BIN_DIR) / 'ninja'}", "-DCMAKE_BUILD_TYPE=Release"]
        options += [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind.cmake_dir()}"]
        output_of(program, "-S", source, "-B", folder, *options, *definitions)
        output_of(program, "--build", folder)
        return folder

    def c_program(self, way: str, libraries: Path) -> None:
        folder = self.work / f"embed_c-{way}"
        shutil.copytree(ROOT / "examples" / "embed_c", folder)
        output_of("make", "-C", folder, "consumer", PKG_CONFIG_PATH=libraries / "pkgconfig")
        self.commands["embed_c", way] = [folder / "consumer"]

    def from_source(self) -> None:
        source = self.work / "embedder"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(EMBEDDER.format(root=ROOT))
        (source / "relinked.c").write_text(CBLAS_PROGRAM)
        wanted = ("-DFASTLINALG_CUDA=OFF", "-DFASTLINALG_CBLAS=ON", "-DFASTLINALG_STATIC=ON")
        folder = self.cmake(source, self.work / "build", *wanted, f"-DCMAKE_INSTALL_PREFIX={self.prefix}")
        self.commands["embed_cmake", "source"] = [folder / "embed_cmake" / "consumer"]
        self.commands["embed_c", "source"] = [folder / "consumer_c"]
        self.commands["cblas relinked", "source"] = [folder / "relinked"]
        self.module("source", next((folder / "python_extension").glob("_core*.so")))
        import cmake

        output_of(Path(cmake.CMAKE_BIN_DIR) / "cmake", "--install", folder)

    def module(self, way: str, path: Path) -> None:
        program = python_program(LOAD_MODULE, "row_distances.squared_distances(a, b)", "squared_distances")
        self.commands["python_extension", way] = [sys.executable, "-c", program, path]

    def from_prefix(self) -> None:
        libraries = self.prefix / "lib"
        options = f"-DCMAKE_PREFIX_PATH={self.prefix}"
        examples = ROOT / "examples"
        folder = self.cmake(examples / "embed_cmake", self.work / "cmake-prefix", options)
        self.commands["embed_cmake", "prefix"] = [folder / "consumer"]
        self.c_program("prefix", libraries)
        folder = self.cmake(examples / "python_extension", self.work / "module-prefix", options)
        self.module("prefix", next(folder.glob("_core*.so")))
        program = self.work / "relinked"
        link = (f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lfastlinalg_cblas")
        output_of("cc", "-O2", self.work / "embedder" / "relinked.c", "-o", program, *link)
        self.commands["cblas relinked", "prefix"] = [program]

    def from_wheel(self) -> None:
        import fastlinalg as fl

        examples = ROOT / "examples"
        folder = self.cmake(
            examples / "embed_cmake", self.work / "cmake-wheel", f"-Dfastlinalg_DIR={fl.get_cmake_dir()}"
        )
        self.commands["embed_cmake", "wheel"] = [folder / "consumer"]
        self.c_program("wheel", Path(fl.get_include()).parent / "lib")
        site = self.work / "site"
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index")
        output_of(*pip, "--target", site, examples / "python_extension")
        setup = f"sys.path.insert(0, {str(site)!r})\nimport row_distances"
        program = python_program(setup, "row_distances.squared_distances(a, b)", "squared_distances")
        self.commands["python_extension", "wheel"] = [sys.executable, "-c", program]
        program = python_program("import fastlinalg as fl", "fl.matmul(a, b)", "fl.matmul")
        self.commands["fl.matmul", "wheel"] = [sys.executable, "-c", program]


def measured(commands: dict[tuple[str, str], list[object]], turns: int) -> list[dict[str, object]]:
    best = dict.fromkeys(commands, 0.0)
    for turn in range(turns):
        order = list(commands) if turn % 2 == 0 else list(commands)[::-1]
        for key in order:
            said = output_of(*commands[key], FASTLINALG_NUM_THREADS=1, FASTLINALG_DEVICE="cpu")
            found = re.search(rf"{N} cubed by .*: ([\d.e+]+) GFLOP/s", said)
            if not found:
                raise SystemExit(f"{key} does not say its speed:\n{said}")
            best[key] = max(best[key], float(found[1]))
    return [{"program": program, "way": way, "gflops": round(value, 2)} for (program, way), value in best.items()]


def machine() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.split(':')[1].strip()}, {len(os.sched_getaffinity(0))} CPUs"
    return platform.machine()


def table(found: dict) -> str:
    speed = {(row["program"], row["way"]): row["gflops"] for row in found["rows"]}
    wheel = speed["fl.matmul", "wheel"]
    lines = ["| program | " + " | ".join(WAYS) + " |", "| --- | " + " | ".join("---:" for _ in WAYS) + " |"]
    for program in dict.fromkeys(program for program, _ in speed):
        cells = [
            f"{speed[program, way]:.1f} ({speed[program, way] / wheel:.2f})" if (program, way) in speed else ""
            for way in WAYS
        ]
        lines.append(f"| {program} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write what was measured")
    parser.add_argument("--table", type=Path, help="only print the table of such a file")
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.table.read_text())))
        return
    commit = output_of("git", "-C", ROOT, "rev-parse", "--short", "HEAD").strip()
    with tempfile.TemporaryDirectory() as work:
        builds = Builds(Path(work))
        builds.from_wheel()
        builds.from_source()
        builds.from_prefix()
        rows = measured(builds.commands, options.turns)
    command = "python benchmarks/embedding.py"
    found = {"commit": commit, "machine": machine(), "command": command, "turns": options.turns, "rows": rows}
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
