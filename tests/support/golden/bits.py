"""The bits of results, kernel by kernel, as hashes: ``bits-*.json``, for one kind of device each.

A cost that is fitted again, a tile that moves to another file, a launch that is written anew change none of them.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import fastlinalg as fl

from ..source_tree import ROOT, ROW_KINDS
from .tables import Table


class Product(NamedTuple):
    m: int
    n: int
    k: int
    batch: int = 1
    trans: str = "NN"  # of A and of B, as in the BLAS
    alpha: float = 1.0
    beta: float = 0.0

    def __str__(self) -> str:
        return "x".join(map(str, (self.m, self.n, self.k, self.batch))) + f" {self.trans} {self.alpha} {self.beta}"


# Sizes that give split-K, stream-K, clusters, interleaved and one-warp tiles something to do, whole and with tails.
PRODUCTS = tuple(
    Product(*sizes)
    for sizes in (
        *((s, s, 1024) for s in (128, 192, 256, 384, 512, 768)),
        (1024, 1024, 512), (1536, 1536, 160), (2112, 2112, 64), (1300, 1500, 96),
        (64, 64, 16384), (31, 33, 4096), (256, 256, 8192), (300, 200, 4100), (97, 89, 1101), (130, 70, 513),
        (450, 330, 4160), (17, 1000, 700), (1000, 20, 900), (5, 7, 65536),
        (1, 2048, 2048), (2048, 1, 2048), (16, 2000, 1500), (2000, 12, 1500), (4096, 16, 1040), (3, 3, 100003),
        (40, 50, 60, 5), (16, 16, 16, 300), (32, 32, 48, 40), (100, 100, 300, 9),
        (200, 300, 700, 1, "TN"), (200, 300, 700, 1, "NT"), (200, 300, 700, 1, "TT"), (513, 511, 515, 2, "TT"),
        (260, 250, 2100, 1, "NN", -0.75, 0.5), (640, 512, 256, 1, "NT", 2.5, 1.0), (70, 90, 5000, 1, "TN", 1.5, -2.0),
    )
)  # fmt: skip


class Matvec(NamedTuple):
    m: int
    n: int
    trans: bool = False
    alpha: float = 1.0
    beta: float = 0.0

    def __str__(self) -> str:
        return f"{self.m}x{self.n} {'T' if self.trans else 'N'} {self.alpha} {self.beta}"


MATVECS = tuple(
    Matvec(m, n, trans, *scalars)
    for m, n in (
        (16384, 16),
        (16384, 32),
        (5000, 33),
        (2048, 128),
        (777, 1000),
        (100, 40000),
        (3, 100003),
        (1024, 4096),
    )
    for trans, scalars in ((False, (1.0, 0.0)), (True, (1.0, 0.0)), (False, (-1.5, 0.5)))
)


LONGEST = 5 * 2**20  # more elements than any operand has


@functools.cache
def stream(seed: int) -> np.ndarray:
    """float32 of both signs with exponents from -4 to 3, from raw bits: the same with every version of NumPy."""
    raw = np.random.PCG64(seed).random_raw(LONGEST)
    exponent = np.uint64(123) + (raw >> np.uint64(40)) % np.uint64(8)
    bits = (raw & np.uint64(0x807FFFFF)) | exponent << np.uint64(23)
    return bits.astype(np.uint32).view(np.float32)


def numbers(seed: int, *shape: int) -> np.ndarray:
    """The first of them."""
    return stream(seed)[: math.prod(shape)].reshape(shape)


def product_operands(case: Product) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    def stack(seed: int, rows: int, cols: int) -> np.ndarray:
        return numbers(seed, *([case.batch] if case.batch > 1 else []), rows, cols)

    a = stack(1, *((case.m, case.k) if case.trans[0] == "N" else (case.k, case.m)))
    b = stack(2, *((case.k, case.n) if case.trans[1] == "N" else (case.n, case.k)))
    return a, b, stack(3, case.m, case.n) if case.beta else None


def digest(call) -> str:
    """Of the result, or that the kernel does not take such operands."""
    try:
        result = call()
    except ValueError as error:
        if "leave its name out" not in str(error):
            raise
        return "refused"
    values = result if isinstance(result, np.ndarray) else result.numpy()
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]


def product_bits(kernel, case: Product, precision: str) -> str:
    put = fl.DeviceArray.from_numpy if kernel.device == "cuda" else np.asarray
    a, b, c = (None if x is None else put(x) for x in product_operands(case))
    call = functools.partial(
        fl.sgemm, a, b, c, alpha=case.alpha, beta=case.beta, trans_a=case.trans[0] == "T", trans_b=case.trans[1] == "T",
        kernel=kernel.name, precision=precision, device=kernel.device,
    )  # fmt: skip
    return digest(call)


def matvec_bits(kernel, case: Matvec) -> str:
    put = fl.DeviceArray.from_numpy if kernel.device == "cuda" else np.asarray
    x, y = (case.m, case.n) if case.trans else (case.n, case.m)
    operands = (put(numbers(1, case.m, case.n)), put(numbers(2, x)), put(numbers(3, y)) if case.beta else None)
    scalars = {"alpha": case.alpha, "beta": case.beta, "trans": case.trans}
    return digest(functools.partial(fl.sgemv, *operands, **scalars, kernel=kernel.name, device=kernel.device))


def is_quick(kernel, case: Product) -> bool:
    """The reference kernels take seconds for what the others do in milliseconds."""
    limit = 2e8 if kernel.name == "reference" else 1e12
    return case.m * case.n * case.k * case.batch <= limit


def bits_of(kernel) -> dict[str, dict[str, str]]:
    """table -> call -> hash. Accurate ones where they are not the strict ones: where a sum may be cut for accuracy."""
    if kernel.op == "sgemv":
        return {"sgemv": {str(case): matvec_bits(kernel, case) for case in MATVECS}}
    bits = {
        f"sgemm {precision}": {
            str(case): product_bits(kernel, case, precision) for case in PRODUCTS if is_quick(kernel, case)
        }
        for precision in (("strict", "accurate") if kernel.strict else ("accurate",))
    }
    if bits.get("sgemm strict") == bits["sgemm accurate"]:
        del bits["sgemm accurate"]
    return bits


def stored_bits(kernel, tables: dict[str, Table]) -> dict[str, dict[str, str]]:
    own = {table: rows.get(kernel.name) for table, rows in tables.items() if table.split()[0] == kernel.op}
    return {table: values for table, values in own.items() if values}


def kernels(device: str) -> list:
    return [kernel for op in ("sgemm", "sgemv") for kernel in fl.kernels(op) if kernel.device == device]


def listed_rows() -> set[tuple[str, str]]:
    """Operation and name, also of rows for other processors, which this build leaves out."""
    text = (ROOT / "cpp" / "table" / "kernels.def").read_text()
    rows = re.findall(rf"^(?:{ROW_KINDS})?(SGEMM|SGEMV|TRANSPOSE)\(\s*(\w+)", text, re.MULTILINE)
    return {(op.lower(), name) for op, name in rows}


def new_bits(device: str, old: dict[str, Table], names: Sequence[str]) -> dict[str, Table]:
    """Of the kernels that can run here, or of those that are named; the others keep what they have while they exist."""
    there = listed_rows()
    found = {
        table: {row: values for row, values in rows.items() if (table.split()[0], row) in there}
        for table, rows in old.items()
    }
    for kernel in kernels(device):
        if kernel.available and (not names or kernel.name in names):
            for table in stored_bits(kernel, found):
                del found[table][kernel.name]
            for table, values in bits_of(kernel).items():
                found[table][kernel.name] = values
    return found
