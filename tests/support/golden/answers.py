"""What calls say of themselves, in ``answers.json``: ``fl.explain`` and the log, of where they run, by what and why.

Asked in a process of its own, whose environment says what the machine is. Figures are left out, and names of rows that
were not taken: those are the other golden values'.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import fastlinalg as fl

from ..programs import completed
from ..simulation.library import build_library, run
from ..source_tree import TESTS
from .tables import Table, read

ON_CPU = {
    "avx2": {"FASTLINALG_CPU": "avx2", "FASTLINALG_NUM_THREADS": "2"},
    "baseline": {"FASTLINALG_CPU": "baseline", "FASTLINALG_NUM_THREADS": "1"},
}
SIMULATED = {
    "9.0": {},
    "8.0": {"FASTLINALG_SIMULATED_CC": "80"},
    "7.5": {"FASTLINALG_SIMULATED_CC": "75"},
    "12.0": {"FASTLINALG_SIMULATED_CC": "120"},
    "9.0 as 8.0": {"FASTLINALG_COMPUTE_CAPABILITY": "8.0"},
    "eight of 9.0": {"FASTLINALG_SIMULATED_DEVICES": "8"},
    "9.0 by FASTLINALG_DEVICE": {"FASTLINALG_DEVICE": "cuda"},
}
LIKE = "simulated: 9.0"  # of the others the file has the rows that differ
PROGRAM = f"import sys; sys.path.insert(0, {str(TESTS)!r}); from support.golden import answers; answers.say()"

# ---------------------------------------------------------------- what is asked, in that process
SIZES = ((40, 50, 60), (700, 600, 500), (5000, 4000, 3000), (256, 256, 8192))
SHAPES: dict[str, Callable[[int, int, int], tuple]] = {
    "product": lambda m, n, k: ((m, k), (k, n)),
    "batch": lambda m, n, k: ((7, m, k), (k, n)),
    "one row": lambda m, n, k: ((1, k), (k, n)),
    "one column": lambda m, n, k: ((m, k), (k, 1)),
    "matrix and vector": lambda m, n, k: ((m, k), (k,)),
    "vector and matrix": lambda m, n, k: ((k,), (k, n)),
    "vectors": lambda m, n, k: ((k,), (k,)),
    "transpose": lambda m, n, k: ((m, n),),
    "nothing": lambda m, n, k: ((0, k), (k, n)),
    "itself": lambda m, n, k: (itself := np.ones((m, k), np.float32), itself.T),
}
OF_TWO_MATRICES = ("product", "batch", "itself")  # whose answer depends on the size, so that all are asked
ON_DEVICES = {
    "auto": {}, "cpu": {"device": "cpu"}, "cuda": {"device": "cuda"}, "cuda:all": {"device": "cuda:all"},
    "naive": {"kernel": "naive"},
}  # fmt: skip
PRECISIONS = ("strict", "reproducible")
LEFT_OUT = (
    (r"\n  not .*", ""),
    (r"\n  next  +(for the largest part )?.*", r"; \1"),
    (r"\n  kernel  +(\w+) \(.*\): ", r"; \1 "),
    (r"fastest of \d+ kernels that can compute it here", "fastest"),
    (r"about [\d.]+ (ns|µs|ms|s)\b", "T"),
    (r"\n  \w+ +", "; "),
)


def text_of(operands: tuple, options: dict[str, Any]) -> str:
    try:
        return str(fl.explain(*operands, **options))
    except (ValueError, fl.CudaError) as error:
        return f"{type(error).__name__}: {error}"


def explained(operands: tuple, **options: Any) -> str:
    text = text_of(operands, options)
    for pattern, kept in LEFT_OUT:
        text = re.sub(pattern, kept, text)
    return text


def explanations() -> Table:
    place = "cuda" if fl.cuda.is_available() else "cpu"
    ways = dict(ON_DEVICES) if fl.cuda.is_available() else {"cpu": {"device": "cpu"}}
    ways |= {precision: {"device": place, "precision": precision} for precision in PRECISIONS}
    table: Table = {}
    for name, of in SHAPES.items():
        for size in SIZES if name in OF_TWO_MATRICES else SIZES[::2]:
            row = table[f"explain: {name}, {'x'.join(map(str, size))}"] = {}
            for way, options in ways.items():
                if "precision" not in options or name not in ("transpose", "vectors"):
                    row[way] = explained(of(*size), **options)
            row["not"] = "; ".join(re.findall(r"\n  not .*: (.*)", text_of(of(*size), ways[place])))
    return table


def explanations_on_the_device() -> Table:
    operands = {size: fl.DeviceArray.from_numpy(np.ones((size[0], size[2]), np.float32)) for size in SIZES}
    return {
        f"explain: itself on the device, {'x'.join(map(str, size))}": {
            precision: explained((a, a), trans_b=True, precision=precision) for precision in ("accurate", *PRECISIONS)
        }
        for size, a in operands.items()
    }


LIMITS = {"": 0, ", 1 MiB": 1 << 20}  # of each device


def filled(put, *shape: int):
    return put(np.ones(shape, np.float32))


# Of one size each: the log names a shape when it is new.
CALLS: dict[str, Callable[..., Any]] = {
    "product": lambda a, b, x, n, **w: fl.matmul(a, b, **w),
    "strict": lambda a, b, x, n, **w: fl.matmul(a, b, precision="strict", **w),
    "reproducible": lambda a, b, x, n, **w: fl.matmul(a, b, precision="reproducible", **w),
    "with C": lambda a, b, x, n, **w: fl.sgemm(a, b, b, alpha=2.0, beta=0.5, **w),
    "alpha 0": lambda a, b, x, n, **w: fl.sgemm(a, b, alpha=0.0, **w),
    "transposed": lambda a, b, x, n, **w: fl.sgemm(a, b, trans_a=True, trans_b=True, **w),
    "itself": lambda a, b, x, n, **w: fl.sgemm(a, a, trans_b=True, **w),
    "one triangle": lambda a, b, x, n, **w: fl.ssyrk(a, **w),
    "a kernel": lambda a, b, x, n, **w: fl.sgemm(a, b, kernel="portable" if w["device"] == "cpu" else "naive", **w),
    "no such kernel": lambda a, b, x, n, **w: fl.sgemm(a, b, kernel="nive", **w),
    "matrix and vector": lambda a, b, x, n, **w: fl.sgemv(a, x, **w),
    "transposed matrix and vector": lambda a, b, x, n, **w: fl.sgemv(a, x, trans=True, **w),
    "transpose": lambda a, b, x, n, **w: fl.transpose(a, **w),
    "transpose in place": lambda a, b, x, n, **w: fl.transpose(a, out=a, **w),
}


def logged(lines: list[str], call: Callable[[], Any]) -> str:
    lines.clear()
    try:
        call()
    except (ValueError, MemoryError, fl.CudaError) as error:
        lines.append(f"{type(error).__name__}: {error}")
    # Who computed an accurate product, the kernel says in memory; the simulated device has what was there before.
    return "; ".join(re.sub(r" \(estimated .*\)|(?<=, computed by ).*", "", line) for line in lines)


def log_of_calls() -> Table:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("fastlinalg").addHandler(handler)
    logging.getLogger("fastlinalg").setLevel(logging.DEBUG)
    kinds = {"host, cpu": (np.asarray, "cpu", 0)}
    if fl.cuda.is_available():
        kinds |= {f"host, cuda{what}": (np.asarray, "cuda", limit) for what, limit in LIMITS.items()}
        kinds |= {"device": (fl.DeviceArray.from_numpy, "auto", 0)}
    if len(fl.devices()) > 1:
        kinds |= {f"host, cuda:all{what}": (np.asarray, "cuda:all", limit) for what, limit in LIMITS.items()}
    table: Table = {f"log: {name}": {} for name in CALLS}
    if fl.cuda.is_available():
        large = np.ones((3000, 3000), np.float32)
        table["log: large transpose in place"] = {"host, auto": logged(lines, lambda: fl.transpose(large, out=large))}
    for i, (kind, (put, device, limit)) in enumerate(kinds.items()):
        for ordinal in range(len(fl.devices())):
            fl.cuda.set_memory_limit(limit, ordinal)
        for j, (name, call) in enumerate(CALLS.items()):
            n = 300 + 20 * i + j
            a, b, x = filled(put, n, n), filled(put, n, n), filled(put, n)
            table[f"log: {name}"][kind] = logged(lines, lambda: call(a, b, x, n, device=device))  # noqa: B023
    return table


def say() -> None:
    answers = explanations()  # before a call has measured the link
    if fl.cuda.is_available():
        answers |= explanations_on_the_device()
    print(json.dumps(answers | log_of_calls()))


# ---------------------------------------------------------------- who asks
def on_cpu() -> dict[str, Table]:
    there = {key: value for key, value in os.environ.items() if not key.startswith("FASTLINALG_")}
    there |= {"FASTLINALG_TUNE": "off", "CUDA_VISIBLE_DEVICES": ""}
    tables = {}
    for name, variables in ON_CPU.items():
        done = completed(sys.executable, "-c", PROGRAM, env=there | variables, seconds=300)
        tables[f"cpu: {name}"] = json.loads(done.stdout)
    return tables


def on_simulated(library: Path, name: str) -> dict[str, Table]:
    variables = {"FASTLINALG_TUNE": "off"} | ON_CPU["avx2"] | SIMULATED[name]
    return {f"simulated: {name}": json.loads(run(library, ["-c", PROGRAM], **variables))}


def on_all_simulated() -> dict[str, Table]:
    with TemporaryDirectory() as folder:
        library = build_library(Path(folder))
        tables = {table: rows for name in SIMULATED for table, rows in on_simulated(library, name).items()}
    return {
        table: {row: said for row, said in rows.items() if table == LIKE or said != tables[LIKE][row]}
        for table, rows in tables.items()
    }


def stored(where: str) -> dict[str, Table]:
    tables = read("answers")
    like = tables[LIKE] if where.startswith("simulated") else {}
    return {table: like | rows for table, rows in tables.items() if table.startswith(where)}
