"""How GPU kernels cut a sum: the accumulation depth of a call and the bytes of workspace.

The number of ranges of k follows from the two. Both are of the call alone, whatever the costs and the device.
"""

from __future__ import annotations

from fastlinalg import _core

from .tables import Table

SIZES = tuple(
    (m, n, k)
    for m, n in ((1, 8192), (16, 4096), (31, 33), (64, 64), (100, 1000), (128, 128), (256, 256), (300, 400), (512, 512),
                 (777, 640), (1024, 1024), (2048, 2048), (4096, 4096), (100000, 33))
    for k in (17, 256, 1000, 1024, 4096, 8156, 65536)
)  # fmt: skip


def sums() -> dict[str, Table]:
    """precision -> GPU kernel -> call -> depth of its sums (None: any will do) and bytes of workspace.

    Of accurate sums those that differ from the strict ones of their kernel.
    """
    found: dict[str, Table] = {"strict": {}, "accurate": {}}
    for precision, rows in found.items():
        for m, n, k in SIZES:
            for name, (_, depth, bytes_) in _core.testing.sgemm_rules(m, n, k, precision)[1].items():
                rows.setdefault(name, {})[f"{m}x{n}x{k}"] = [depth, bytes_]
    strict, accurate = found.values()
    return found | {"accurate": {name: calls for name, calls in accurate.items() if calls != strict.get(name)}}
