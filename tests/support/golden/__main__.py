"""Writes golden values anew and says what has changed, for who changes them on purpose and for the changelog.

python -m support.golden plans            in tests/: what rules say of calls, which needs no device
python -m support.golden answers          what calls say of themselves on the CPU: x86 with AVX2
python -m support.golden simulated        and on simulated devices, whose library it builds in some minutes
python -m support.golden cpu [kernel]...  the bits of kernels on the CPU
python -m support.golden cuda [kernel]... on the device that the file is for; elsewhere it drops rows that have gone
"""

from __future__ import annotations

import sys

from .answers import on_all_simulated, on_cpu
from .bits import new_bits
from .plans import plans
from .tables import Table, differences, read, write

FILES = {"plans": "plans", "answers": "answers", "simulated": "answers", "cpu": "bits-cpu", "cuda": "bits-h200"}


def renewed(what: str, old: dict[str, Table], kernels: tuple[str, ...]) -> dict[str, Table]:
    if what == "plans":
        return plans()
    if what == "answers":
        return old | on_cpu()
    if what == "simulated":
        return old | on_all_simulated()
    return new_bits(what, old, kernels)


def main(what: str, *kernels: str) -> None:
    old = read(FILES[what])
    new = renewed(what, old, kernels)
    write(FILES[what], new)
    print("\n".join(differences(old, new)) or f"{FILES[what]}.json is as it was")


if __name__ == "__main__":
    main(*sys.argv[1:])
