"""A program that uses every kernel that is there, and what it says of those that are not."""

from __future__ import annotations

# Calls of all operations, in host and device memory, strict and accurate, against float64; then every kernel by name.
PROGRAM = """
import numpy as np, fastlinalg as fl
generator = np.random.default_rng(7)
def normal(*shape): return generator.standard_normal(shape, dtype=np.float32)
def oracle(a, b):
    return a.astype(float) @ b.astype(float), (a.shape[-1] + 8) * 2.0**-23 * (np.abs(a).astype(float) @ np.abs(b))
def check(c, right, what):
    want, bound = right
    assert (np.abs(c - want) <= bound).all(), what
SHAPES = ((1, 1, 1), (33, 17, 65), (512, 512, 512), (600, 8, 700), (8, 600, 700), (1, 900, 300), (700, 1, 300),
          (64, 64, 4096), (1100, 900, 130), (1024, 768, 1024))
for m, n, k in SHAPES:
    a, b = normal(m, k), normal(k, n)
    right = oracle(a, b)
    column = [x[:, 0] for x in right]
    for precision in ("strict", "accurate"):
        check(fl.matmul(a, b, device="cuda", precision=precision), right, (m, n, k, precision))
        check(fl.matmul(a, np.asfortranarray(b), precision=precision), right, (m, n, k, precision, "auto"))
        with fl.Matmul(a, b, device="cuda", precision=precision) as product:
            check(product.execute(), right, (m, n, k, precision, "plan"))
    d, e = fl.DeviceArray.from_numpy(a), fl.DeviceArray.from_numpy(b)
    for _ in range(4): check(fl.matmul(d, e).numpy(), right, (m, n, k, "device"))
    for x in (a, np.asfortranarray(a)):
        check(fl.sgemv(x, b[:, 0].copy(), device="cuda"), column, (m, k, "sgemv"))
    assert np.array_equal(fl.transpose(a, device="cuda"), a.T), (m, k, "transpose")
square = normal(96, 96)
assert np.array_equal(fl.transpose(square, device="cuda"), square.T)
stack, other = normal(40, 24, 24), normal(40, 24, 24)
check(fl.matmul(stack, other, device="cuda"), oracle(stack, other), "batch")
a, b = normal(96, 64), normal(64, 80)
right = oracle(a, b)
for row in fl.kernels("sgemm"):
    if row.device != "cuda": continue
    try: c = fl.sgemm(a, b, kernel=row.name, precision="strict" if row.strict else "accurate")
    except ValueError as error:
        assert not row.available and row.reason in str(error) and row.needs in str(error), (row, str(error))
    else:
        assert row.available, row
        check(c, right, row.name)
for row in fl.kernels("sgemm") + fl.kernels("sgemv") + fl.kernels("transpose"):
    if row.device == "cuda": print(row.needs, row.available, row.reason, sep="|")
print("info", True, fl.info()["cuda"]["missing_code"], sep="|")
"""


def answers(output: str) -> dict[str, tuple[bool, str]]:
    """By what a kernel needs, and "info": whether it is there, and why not."""
    found: dict[str, set[tuple[bool, str]]] = {}
    for line in output.splitlines():
        needs, available, reason = line.split("|")
        found.setdefault(needs, set()).add((available == "True", reason))
    assert all(len(answer) == 1 for answer in found.values()), found
    return {needs: answer.pop() for needs, answer in found.items()}
