"""The host layer of the GPU on a simulated device (scheduler.h), so that it is tested where there is no GPU.

The library is built once, with a C++ compiler and the headers of CUDA, and tests marked `gpu` run with it in processes
of their own, each with another order of the device's work. FASTLINALG_REQUIRE=simulated demands it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.loaded_code import PROGRAM, answers
from support.requirements import mostly_exhaustive
from support.simulation.library import run
from support.source_tree import TESTS

STREAMS = ("caller_streams", "kept_splits", "constant_operands", "repeated_calls")
NO_OTHERS = "not bf16x6 and not mma"
MORE_CONSTANT = "(700 or 900 or (says_so and out))"
# The order of the device's work, and files with which of their tests, in a process of its own. Left out: what takes a
# CPU too long, what needs a real device's memory, and tests of other libraries.
RUNS: dict[str, tuple[int, dict[str, str]]] = {
    "device arrays": (1, {
        "device/test_device_arrays.py": "", "device/test_device_arrays_errors.py": "", "plans/test_plans.py": "",
        "api/test_malformed_arrays.py": "", "api/test_one_row_or_column.py": "", "dispatch/test_dispatch.py": "",
        "device/test_memory.py": "not many_calls and not four", "kernels/test_transpose_in_place.py": "",
        "consumers/test_c_interface.py": "device_memory or memory_limit or in_place", "host/test_conversion.py": "",
        "reproducible/test_reproducible.py": "slices or vectors_are_columns or are_cut",
        "host/test_triangles.py": "", "kernels/test_ssyrk.py": "not graphs and not of_the_whole",
    }),
    "host arrays": (2, {
        "symmetric/test_symmetric_host.py": "not shape2 and not shape5", "process/test_long_calls.py": "",
        "host/test_tiles.py": "scalars or what_others or many_small",
        "device/test_halves.py": "not each_row and not large_matrices",
        "host/test_host_calls.py": "test_layouts or empty_sum or (shapes_and_orders and 513)",
    }),
    "plans and lists": (3, {
        "plans/test_plans_device.py": "", "plans/test_plans_streams.py": "", "api/test_grouped.py": "",
        "device/test_repeated_calls.py": "not many_strict_calls and not many_products",
        "plans/test_constant_operands.py": f"{NO_OTHERS} and not 1536 and not 2000 and not {MORE_CONSTANT}",
    }),
    "operands that stay": (1, {"device/test_operands_that_stay.py": f"{NO_OTHERS} and not 1500"}),
    "streams": (1, dict.fromkeys((f"simulated/{file}.py" for file in STREAMS), "")),
    "fork": (1, {"process/test_fork.py": "child_of_fork"}),
}  # fmt: skip
# More of what others in the list have a part of, or what takes minutes.
SECOND_TIER: dict[str, tuple[int, dict[str, str]]] = {
    "host calls": (1, {
        "host/test_host_calls.py": "not share and not same_bits and not batches and not memory",
        "host/test_tiles.py": "scalars or batch or what_others or many_small or nothing or log or (strict and 257)",
        "kernels/test_addends.py": "bf16x6_mma or naive or strict_64x64k4c2 or short_calls",
        "reproducible/test_reproducible.py": "recorded_bits_on_a_gpu",
        "dispatch/test_tuning.py": "", "cli/test_tune.py": "",
    }),
    "symmetric products": (2, {
        "kernels/test_ssyrk.py": "of_the_whole", "host/test_callers.py": "all_sizes",
        "symmetric/test_symmetric_host.py": "shape2 or shape5",
    }),
    "shared splits": (2, {
        "host/test_host_calls.py": f"(same_bits and strict) or input_may_change or (share and split and {NO_OTHERS})",
        "plans/test_constant_operands.py": f"{NO_OTHERS} and {MORE_CONSTANT}",
    }),
    "plans again": (1, {"plans/test_plans_device.py": "", "plans/test_plans_streams.py": ""}),
    "streams again": (2, RUNS["streams"][1]),
}  # fmt: skip


def test_the_package_uses_the_simulated_device(library):
    assert "simulated" in run(library, ["-c", "import fastlinalg as fl; print(fl.devices())"])


CHOSEN = """
import sys, numpy as np, fastlinalg as fl
from support import tuning_tables
if "tuned" in sys.argv:
    strict = [row.name for row in fl.kernels("sgemm") if row.device == "cuda" and row.strict]
    tuning_tables.use(
        [("sgemm", "fp16x2_mma", [(1, 0.05)]), *(("sgemm", name, [(1, 1)]) for name in strict)], "cuda", "simulated"
    )
for m, n, k in ((512, 512, 512), (2000, 3000, 1000), (4096, 4096, 4096), (512, 512, 200)):
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    for precision in ("accurate", "strict"):
        with fl.Matmul(a, b, precision=precision, device="cuda") as product:
            product.plan()
            print(product.kernel, end=" ")
"""


@pytest.mark.parametrize(
    ("device", "pays"),
    [
        ({"FASTLINALG_SIMULATED_CC": "80"}, True),
        ({"FASTLINALG_SIMULATED_CC": "89", "FASTLINALG_SIMULATED_NAME": "NVIDIA GeForce RTX 4090"}, False),
        ({"FASTLINALG_SIMULATED_CC": "89", "FASTLINALG_SIMULATED_NAME": "a chip of tomorrow"}, False),
        ({"FASTLINALG_SIMULATED_CC": "90"}, False),
        ({"FASTLINALG_COMPUTE_CAPABILITY": "8.0"}, True),
        ({"FASTLINALG_SIMULATED_CC": "120"}, False),
    ],
    ids=str,
)
def test_tensor_cores_before_hopper_are_chosen_where_they_pay(library, device, pays):
    chosen = run(library, ["-c", CHOSEN], **device).split()
    assert [name == "fp16x2_mma" for name in chosen[2:6]] == [pays, False] * 2, chosen
    assert "fp16x2_mma" not in chosen[1::2], chosen


def test_tensor_cores_are_chosen_where_they_were_measured_to_be_faster(library):
    chosen = run(library, ["-c", CHOSEN, "tuned"], FASTLINALG_SIMULATED_CC="89").split()
    assert chosen[4] == "fp16x2_mma" and "fp16x2_mma" not in chosen[1::2], chosen  # 4096 cubed, and all that are strict


PASSED_OVER = """
import sys, fastlinalg as fl
from fastlinalg import _core
from support import tuning_tables
rows = {row.name: row for row in fl.kernels("sgemm") if row.device == "cuda" and row.available}
assert rows["fp16x2_mma"].passed_over == "not known to gain anything on this device", rows["fp16x2_mma"]
assert not any(row.passed_over for row in rows.values() if row.needs in ("cuda", "sm_80") and row.strict)
unmeasured = [row for row in rows.values() if row.needs == "sm_90"]
assert all("not measured on this chip" in row.passed_over for row in unmeasured)
tuning_tables.use([("sgemm", name, [(1, 1)]) for name in rows], "cuda", _core.tuned_name(0))
assert not any(row.passed_over for row in fl.kernels("sgemm"))
"""


@pytest.mark.parametrize("capability", mostly_exhaustive(["120", "121"]))
def test_what_is_not_chosen_says_why_until_it_has_been_tuned(library, capability):
    run(library, ["-c", PASSED_OVER], FASTLINALG_SIMULATED_CC=capability)


def test_a_device_that_pretends_has_a_table_of_its_own(library):
    """What was measured with the kernels of an older one says nothing about the device as itself."""
    program = "from fastlinalg import _core; print(_core.tuned_name(0))"
    assert run(library, ["-c", program], FASTLINALG_COMPUTE_CAPABILITY="8.0").strip() == "simulated as 8.0"
    assert run(library, ["-c", program]).strip() == "simulated"


TUNED = """
import sys
from fastlinalg.bench import tuning
from fastlinalg.cli import main, selftest, tune
tuning.SHAPES["cuda"] = {"sgemm": 4}
tuning.MOST_WORK["cuda"] = {"sgemm": 1e6}
tune.cases = lambda op, quick: list(selftest.cases(op, quick=True))[:4]
right = tune.check_kernel
def check(cases, kernel, precision, device):
    outcome = right(cases, kernel, precision, device)
    if kernel == "fp16x2_mma" and "wrong" in sys.argv: outcome.faults.append("seeded")
    return outcome
tune.check_kernel = check
assert main(["tune", "--force", "--device", "cuda"]) == 0
main(["tune", "--show"])
"""


@pytest.mark.parametrize("wrong", [False, True])
def test_tune_checks_what_was_never_chosen_here(library, tmp_path, wrong):
    path = tmp_path / "tuning.txt"
    arguments = ["-c", TUNED, *(["wrong"] if wrong else [])]
    said = run(library, arguments, FASTLINALG_SIMULATED_CC="89", FASTLINALG_TUNE=str(path))
    verdict = "WRONG, never chosen: seeded" if wrong else "right"
    line = f"sgemm fp16x2_mma: not chosen here before, checked against float64: {verdict}"
    assert said.count(line) == 2, said
    text = path.read_text()
    found = dict(re.findall(r"^#   sgemm (\w+): .* float64: (\w+)", text, re.MULTILINE))
    assert found == {"fp16x2_mma": "WRONG" if wrong else "right", "fp16x2_mma_k8": "right", "bf16x6_mma": "right"}
    assert not (wrong and "row sgemm fp16x2_mma " in text)


# ---------------------------------------------------------------- a device and a binary that do not match
# The driver's choice, and a phrase of the reason: foreseen from the environment, or against what was expected.
UNFIT = {
    "ptx by force": ({"CUDA_FORCE_PTX_JIT": "1"}, "CUDA_FORCE_PTX_JIT is set"),
    "code for 8.0": ({"FASTLINALG_SIMULATED_CODE": "80"}, "cuda:0 runs code for compute capability 8.0"),
    "code for 9.0": ({"FASTLINALG_SIMULATED_CODE": "90"}, "cuda:0 runs code for compute capability 9.0"),
}


@pytest.mark.parametrize("unfit", mostly_exhaustive(UNFIT, "code for 8.0"))
def test_calls_are_right_where_kernels_are_missing(library, unfit):
    variables, phrase = UNFIT[unfit]
    found = answers(run(library, ["-c", PROGRAM], **variables))
    assert found["cuda"] == found["sm_80"] == (True, "")
    assert not found["sm_90a"][0] and phrase in found["sm_90a"][1] and "'90a-real 80-virtual'" in found["sm_90a"][1]
    assert found["info"] == (True, found["sm_90a"][1])


COMPILES = """
import logging, sys, numpy as np, fastlinalg as fl
logging.basicConfig(level=logging.DEBUG, format="%(message)s", stream=sys.stdout)
from fastlinalg.cli import main
for n in (300, 400): fl.matmul(np.ones((n, n), "f4"), np.ones((n, n), "f4"), device="cuda")
main(["info"])
"""


@pytest.mark.parametrize("unfit", [None, *UNFIT])
def test_the_log_says_once_that_the_driver_compiles(library, unfit):
    """And the command line which code is missing."""
    variables, phrase = UNFIT.get(unfit, ({}, ""))
    said = run(library, ["-c", COMPILES], **variables)
    assert said.count("-> cuda:0 runs PTX for compute capability") == bool(unfit), said
    assert not unfit or re.search(f"not here: .*{re.escape(phrase)}", said), said


def test_all_kernels_are_there_where_the_code_fits(library):
    assert set(answers(run(library, ["-c", PROGRAM])).values()) == {(True, "")}


def test_tensor_cores_of_other_code_take_over_from_hoppers_rows(library):
    chosen = run(library, ["-c", CHOSEN], CUDA_FORCE_PTX_JIT="1").split()
    assert [name == "fp16x2_mma" for name in chosen[2:6]] == [True, False] * 2, chosen


# The first call decides by what is expected, and the driver has chosen otherwise.
FIRST = """
import numpy as np, fastlinalg as fl
assert all(row.available for row in fl.kernels("sgemm") if row.device == "cuda")
a = np.random.default_rng(1).standard_normal((1200, 1200), dtype=np.float32)
want = a.astype(float) @ a
for _ in range(2): assert np.allclose(fl.matmul(a, a), want, rtol=0, atol=2e-3)
assert not all(row.available for row in fl.kernels("sgemm") if row.device == "cuda"), "not on the device"
"""


def test_what_the_driver_chose_replaces_what_was_expected(library):
    run(library, ["-c", FIRST], FASTLINALG_SIMULATED_CODE="80")


NO_CODE = """
import numpy as np, fastlinalg as fl
a = np.ones((2000, 2000), np.float32)
assert (fl.matmul(a, a) == 2000).all()
def error(call):
    try: call()
    except fl.CudaError as problem: return problem
d = fl.DeviceArray.from_numpy(a)
for call in (lambda: fl.matmul(a, a, device="cuda"), lambda: fl.sgemm(a, a, kernel="naive"), lambda: fl.transpose(d),
             lambda: fl.sgemv(d, fl.DeviceArray.from_numpy(a[0])), lambda: fl.transpose(a, kernel="smem")):
    problem = error(call)
    assert "cudaErrorNoKernelImageForDevice" in (getattr(problem, "name", ""), str(problem)), repr(problem)
    assert "FASTLINALG_CUDA_ARCHITECTURES was '90a-real 80-virtual'" in str(problem), problem
for op in ("sgemm", "sgemv", "transpose"):
    assert all(row.reason and not row.available for row in fl.kernels(op) if row.device == "cuda")
assert fl.info()["cuda"]["missing_code"]
"""


@pytest.mark.parametrize(
    "variables",
    [{"FASTLINALG_SIMULATED_CODE": "none"}, {"FASTLINALG_SIMULATED_CC": "75", "FASTLINALG_SIMULATED_CODE": "none"}],
    ids=["against what was expected", "as expected"],
)
def test_a_device_that_can_run_no_code(library, variables):
    """Left to itself fastlinalg computes on the CPU; the device asked for is an error that says why."""
    run(library, ["-c", NO_CODE], **variables)


CONTEXT = """
import ctypes, numpy as np, fastlinalg as fl
library = ctypes.CDLL("libfastlinalg.so")
library.simulated_context_made.restype = ctypes.c_bool
assert fl.cuda.is_available() and fl.devices() and fl.info() and fl.kernels("sgemm")
a = np.ones((64, 64), np.float32)
fl.matmul(a, a)
assert fl.Matmul(a, a).device == "cpu"  # planned when it is made, and as a call would choose
assert not library.simulated_context_made()
fl.matmul(a, a, device="cuda")
assert library.simulated_context_made()
"""


def test_only_a_call_on_the_device_makes_its_context(library):
    run(library, ["-c", CONTEXT])


def passes(library, files: dict[str, str], seed, *options, **variables):
    """Tests of these files whose names fit what is chosen of each, on the simulated device."""
    chosen = " or ".join(f"({Path(file).name} and ({of_file}))" if of_file else Path(file).name
                         for file, of_file in files.items())  # fmt: skip
    command = ["-m", "pytest", "-q", "-s", "-x", "-p", "no:cacheprovider", *options, "-k", chosen]
    return " passed" in run(library, [*command, *(str(TESTS / file) for file in files)], seed, **variables)


@pytest.mark.parametrize("name", mostly_exhaustive(RUNS | SECOND_TIER, *RUNS))
def test_host_layer(library, name):
    seed, files = (RUNS | SECOND_TIER)[name]
    assert passes(library, files, seed, *([] if "streams" in name else ["-m", "gpu"]))


FEW = "bits_of_one and strict and not 30001 or plans or midst or splits or within or views or own or overlaps or line"


@pytest.mark.parametrize(
    ("devices", "peers", "seed", "chosen"),
    mostly_exhaustive([(2, 1, 2, FEW), (2, 0, 3, FEW), (3, 1, 4, "not bits_of_one or strict")]),
)
def test_several_devices(library, devices, peers, seed, chosen):
    """That pass operands on to each other, or cannot."""
    files = ["host/test_several_devices.py", "device/test_sharded.py"]
    if devices == 2:
        files += ["simulated/shared_splits.py", "simulated/constant_operands.py"]
    variables = {"FASTLINALG_SIMULATED_DEVICES": str(devices), "FASTLINALG_SIMULATED_PEERS": str(peers)}
    assert passes(library, dict.fromkeys(files, chosen), seed, FASTLINALG_REQUIRE="cuda,sm_90a,cuda2", **variables)


UNLIKE = """
import numpy as np, fastlinalg as fl
a = np.ones((900, 900), np.float32)
assert (fl.matmul(a, a, device=["cuda:0", "cuda:2"]) == 900).all()
try: fl.matmul(a, a, device="cuda:all")
except ValueError as problem: print(problem)
"""


def test_devices_of_two_kinds_are_refused(library):
    said = run(library, ["-c", UNLIKE], FASTLINALG_SIMULATED_DEVICES="3", FASTLINALG_SIMULATED_SMS="132,114,132")
    assert "of one kind" in said and "cuda:1 simulated, compute capability 9.0, 114 multiprocessors" in said
