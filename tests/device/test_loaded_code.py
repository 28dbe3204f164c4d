"""A device whose loaded code is not what its hardware could run: a build for other architectures, or PTX by force.

Each answer has to be right all the same, by the kernels that are there, and what is missing is said.
"""

from __future__ import annotations

import os
import re
import shutil
import sys

import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.loaded_code import PROGRAM, answers
from support.programs import completed
from support.source_tree import ROOT

KERNELS = sorted(p for p in (ROOT / "cuda").rglob("*.cu*") if "kernels" in p.parts)
source_tree = pytest.mark.skipif(not KERNELS, reason="needs the source tree")

# ---------------------------------------------------------------- what the driver is expected to take
DEFAULT = "90a-real 80-virtual"
WHEEL = "75-real 80-real 86-real 89-real 90a-real 100f-real 120f-real 100-virtual"
NOTHING = (0, False)


@pytest.mark.parametrize(
    ("architectures", "capability", "code"),
    [
        (DEFAULT, 90, (90, True)),
        (DEFAULT, 80, (80, False)),
        (DEFAULT, 100, (80, False)),  # code with features of 9.0 alone runs nowhere else
        (DEFAULT, 75, NOTHING),
        ("90a", 90, (90, True)),
        ("90a", 100, NOTHING),
        ("90", 90, (90, False)),
        ("90", 120, (90, False)),  # its PTX
        ("90-real", 120, NOTHING),
        ("90 90a-real", 90, (90, True)),
        ("80-virtual", 90, (80, False)),
        ("80-real", 90, NOTHING),
        ("80-real", 86, (80, False)),
        (WHEEL, 86, (86, False)),
        (WHEEL, 87, (86, False)),
        (WHEEL, 90, (90, True)),
        (WHEEL, 75, (75, False)),
        (WHEEL, 103, (100, False)),
        (WHEEL, 107, (100, False)),
        (WHEEL, 110, (100, False)),
        (WHEEL, 121, (120, False)),
        (WHEEL, 130, (100, False)),
        ("100f-real", 103, (100, False)),
        ("100f", 120, NOTHING),
        ("native", 90, (90, False)),
        ("", 90, NOTHING),
    ],
)
def test_expected_code(architectures, capability, code):
    assert _core.testing.expected_code(architectures, capability) == code


@pytest.mark.parametrize(
    ("architectures", "capability", "code"),
    [(DEFAULT, 90, (80, False)), ("90a", 90, (90, True)), (WHEEL, 90, NOTHING), (WHEEL, 120, (100, False))],
)
def test_expected_code_where_only_ptx_may_run(architectures, capability, code):
    assert _core.testing.expected_code(architectures, capability, only_ptx=True) == code


def test_expected_code_where_no_ptx_may_run():
    assert _core.testing.expected_code(DEFAULT, 90, no_ptx=True) == (90, True)
    assert _core.testing.expected_code(DEFAULT, 80, no_ptx=True) == NOTHING


# ---------------------------------------------------------------- no kernel does nothing
def without_guarded(text: str) -> str:
    """What is left of a source for a target that no `#if ...__CUDA_ARCH` is true for."""
    kept, open_ifs = [], []  # for each open #if: whether it asks for the target, and whether its part is left out
    for line in text.splitlines():
        if re.match(r"\s*#\s*if", line):
            open_ifs.append(["__CUDA_ARCH" in line] * 2)
        elif re.match(r"\s*#\s*else", line):
            open_ifs[-1][1] = False
        elif re.match(r"\s*#\s*elif", line):
            asks, _ = open_ifs[-1]
            open_ifs[-1][1] = asks and "__CUDA_ARCH" in line
        elif re.match(r"\s*#\s*endif", line):
            open_ifs.pop()
        elif not any(left_out for _, left_out in open_ifs):
            kept.append(line)
    return "\n".join(kept)


def bodies(text: str):
    """The name and body of each __global__ function."""
    for found in re.finditer(r"__global__", text):
        begin = text.index("{", found.start())
        end, depth = begin, 0
        for end in range(begin, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                break
        name = re.findall(
            r"(\w+)\(", re.sub(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)", "", text[found.start() : begin])
        )
        yield name[0], text[begin + 1 : end]


def idle_kernels(text: str) -> list[str]:
    text = re.sub(r"//[^\n]*", "", text)
    return [name for name, body in bodies(without_guarded(text)) if not body.strip()]


@source_tree
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.name)
def test_no_kernel_does_nothing(path):
    """In code for other targets a kernel computes the same or traps."""
    assert idle_kernels(path.read_text()) == []


def test_a_kernel_that_does_nothing_is_seen():
    head, body = "template <class T>\n__global__ void __launch_bounds__(T::threads(), 1)\n  k(int x) {\n", "  x();\n"
    guard = "#if defined(__CUDA_ARCH_FEAT_SM90_ALL)\n"
    assert idle_kernels(head + guard + body + "#endif\n}\n") == ["k"]
    assert idle_kernels(head + guard + body + "#else\n  not_for_this_target();\n#endif\n}\n") == []
    assert idle_kernels(head + guard + body + "#endif\n" + body + "}\n") == []


@source_tree
def test_some_kernels_trap():
    calls = sum(path.read_text().count("not_for_this_target();") for path in KERNELS)
    assert calls > 10
    assert sum(path.read_text().count("__trap") for path in KERNELS) == 1  # in one place


# ---------------------------------------------------------------- the build says so
CONFIGURE = """
cmake_policy(VERSION 3.20)  # as a project has it
include("{root}/cmake/CudaArchitectures.cmake")
fl_cuda_architectures("{list}" result)
message("result ${{result}}.")
"""


@source_tree
@pytest.mark.parametrize(
    ("wanted", "gpus", "result", "said"),
    [
        ("90a-real;80-virtual", ["9.0"], None, None),
        ("90a", [], None, None),
        ("90;80-virtual", [], None, "has 90 and not 90a"),
        ("90-real", ["9.0"], None, "has 90 and not 90a"),
        ("90;90a-real", ["9.0"], None, None),
        ("80-virtual", ["8.0", "9.0"], None, "has no 90a"),
        ("80-virtual", ["8.0"], None, None),
        ("80-virtual", None, None, None),
        ("native", ["9.0", "9.0"], "90a-real", None),
        ("native", ["8.6", "9.0"], "86-real;90a-real", None),
        ("native", [], None, None),
        ("native", ["7.5"], "75-real", None),
        ("native", ["13.0", "11.9", "7.0"], "100-virtual", None),
        ("default", ["9.0", "8.9"], "90a-real;89-real", None),
        ("default", ["7.0"], "90a-real;80-virtual", None),
        ("default", [], "90a-real;80-virtual", None),
        ("default", None, "90a-real;80-virtual", None),
        ("release", [], WHEEL.replace(" ", ";"), None),
        ("75;90a", [], None, None),
        ("70;90a", [], "", "need compute capability 7.5"),
    ],
)
def test_the_build_warns_of_missing_code(tmp_path, wanted, gpus, result, said):
    """`gpus` is what nvidia-smi prints; none is a machine without it."""
    cmake = shutil.which("cmake")
    if not cmake:
        pytest.skip("needs CMake")
    tool = tmp_path / "nvidia-smi"
    if gpus is not None:
        tool.write_text("#!/bin/sh\n" + "".join(f"echo {gpu}\n" for gpu in gpus) + ("" if gpus else "exit 9\n"))
        tool.chmod(0o755)
    script = tmp_path / "configure.cmake"
    script.write_text(CONFIGURE.format(root=ROOT, list=wanted))
    definition = [f"-DFL_NVIDIA_SMI={tool if gpus is not None else ''}"]
    done = completed(cmake, *definition, "-P", script, status=int(result == ""), cwd=tmp_path)
    output = " ".join((done.stdout + done.stderr).split())
    if result != "":
        assert f"result {wanted if result is None else result}." in output, output
    assert ("CMake Warning" in output or "CMake Error" in output) == bool(said), output
    assert said is None or said in output


@source_tree
@pytest.mark.parametrize(("options", "flags"), [([], "-lineinfo"), (["-DCMAKE_CUDA_FLAGS=-G"], "-G")])
def test_flags_reach_the_compiler_of_the_python_packages(tmp_path, options, flags):
    cmake = shutil.which("cmake")
    if not cmake:
        pytest.skip("needs CMake")
    compiler = tmp_path / "nvidia" / "cu13" / "bin" / "nvcc"
    compiler.parent.mkdir(parents=True)
    compiler.touch()
    script = tmp_path / "configure.cmake"
    script.write_text(f'include("{ROOT}/cmake/FindPipCuda.cmake")\nmessage("flags:${{CMAKE_CUDA_FLAGS}}")\n')
    environment = {name: value for name, value in os.environ.items() if name != "CUDACXX"}
    environment |= {"PYTHONPATH": str(tmp_path), "CUDAFLAGS": "-lineinfo"}
    options = [f"-DPython_EXECUTABLE={sys.executable}", *options]
    done = completed(cmake, *options, "-P", script, env=environment, cwd=tmp_path)
    assert f"flags:{flags} -L{compiler.parent.parent}/lib" in done.stdout + done.stderr


# ---------------------------------------------------------------- on a device
def on_hopper() -> bool:
    return any(device["compute_capability"] == "9.0" for device in fl.devices())


def has_ptx() -> bool:
    capability = int(fl.devices()[0]["compute_capability"].replace(".", ""))
    return _core.testing.expected_code(fl.info()["architectures"], capability, only_ptx=True) != NOTHING


@pytest.mark.gpu
def test_all_calls_with_the_code_of_this_build(python):
    """Also of a build for 80-virtual or 90 alone."""
    found = answers(python(PROGRAM, timeout=600))
    assert found["cuda"] == (True, "")
    if on_hopper():
        assert found["sm_90a"][0] == (found["info"][1] == ""), found
        assert found["sm_90a"][0] == bool(re.search(r"\b90a\b", fl.info()["architectures"])), found


@pytest.mark.gpu
def test_all_calls_with_ptx_by_force(python):
    """The driver compiles the PTX of the build and passes over its machine code."""
    before = python("import fastlinalg as fl; print(fl.info()['cuda']['missing_code'])", CUDA_FORCE_PTX_JIT="1")
    if not has_ptx():
        assert "CUDA_FORCE_PTX_JIT is set" in before
        pytest.skip("this build has no PTX for the device")
    found = answers(python(PROGRAM, timeout=600, CUDA_FORCE_PTX_JIT="1"))
    assert found["cuda"] == (True, "")
    if on_hopper() and "90a-real" in fl.info()["architectures"].split():
        assert not found["sm_90a"][0] and "CUDA_FORCE_PTX_JIT is set" in found["sm_90a"][1]
        assert found["info"] == (True, found["sm_90a"][1])
        assert before.strip() == found["info"][1]  # known before the device has been used


@pytest.mark.gpu
def test_selftest_with_ptx_by_force(python):
    if not has_ptx():
        pytest.skip("this build has no PTX for the device")
    program = "import sys; from fastlinalg.cli import main; sys.exit(main(['selftest', '--device', 'cuda', '--quick']))"
    python(program, timeout=600, CUDA_FORCE_PTX_JIT="1")
