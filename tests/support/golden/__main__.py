"""Writes golden values anew and says what has changed, for who changes them on purpose and for the changelog.

python -m support.golden plans            in tests/: what rules say of calls, which needs no device
python -m support.golden cpu [kernel]...  the bits of kernels on the CPU
python -m support.golden cuda [kernel]... on the device that the file is for; elsewhere it drops rows that have gone
"""

from __future__ import annotations

import sys

from .bits import new_bits
from .plans import plans
from .tables import differences, read, write

FILES = {"plans": "plans", "cpu": "bits-cpu", "cuda": "bits-h200"}


def main(what: str, *kernels: str) -> None:
    name = FILES[what]
    old = read(name)
    new = plans() if what == "plans" else new_bits(what, old, kernels)
    write(name, new)
    print("\n".join(differences(old, new)) or f"{name}.json is as it was")


if __name__ == "__main__":
    main(*sys.argv[1:])
