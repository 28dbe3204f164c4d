"""Writes golden values anew and says what has changed, for who changes them on purpose and for the changelog.

python -m support.golden plans             # in tests/
python -m support.golden cpu
python -m support.golden cuda [kernel]...  # on the device that the file is for
"""

from __future__ import annotations

import sys

from .bits import new_bits
from .plans import plans
from .tables import differences, path_of, read, write


def main(what: str, *names: str) -> None:
    name = {"plans": "plans", "cuda": "bits-h200", "cpu": "bits-cpu"}[what]
    old = read(name) if path_of(name).exists() else {}
    new = plans() if what == "plans" else new_bits(what, old, names)
    write(name, new)
    print("\n".join(differences(old, new)) or f"{name}.json is as it was")


if __name__ == "__main__":
    main(*sys.argv[1:])
