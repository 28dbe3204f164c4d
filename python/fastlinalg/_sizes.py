"""Amounts of memory as people write them."""

from __future__ import annotations

import re
from numbers import Integral, Real

LARGEST = 2**63 - 1  # bytes: what takes a limit counts them in so many bits
_WRITTEN = re.compile(r"\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)?\s*(?:([kmgtp])(i?))?(b?)\s*", re.IGNORECASE)


def parse_bytes(function: str, name: str, size: object) -> int:
    """Bytes, of a number or of text like "2 GiB", "1.5GB" or "500 MB": KiB are 1024 bytes, kB (or k) are 1000.

    Raises
    ------
    ValueError
        A negative size, one of more than 2**63 - 1 bytes, or text that is no size; it names `function` and `name`.
    TypeError
        Neither a number nor text, or a number that is not whole.
    """
    wanted = f"{function}: {name} must be a number of bytes or text like '2 GiB', got {size!r}"
    if isinstance(size, str):
        found = _WRITTEN.fullmatch(size)
        if found is None or not any(found.groups()):
            raise ValueError(wanted)
        value = float(found[1] or 1) * (1024 if found[3] else 1000) ** " kmgtp".index((found[2] or " ").lower())
    elif isinstance(size, bool) or not isinstance(size, Real):
        raise TypeError(wanted)
    elif isinstance(size, Integral):
        value = int(size)
    elif not float(size).is_integer():
        raise TypeError(f"{wanted}, which is not whole")
    else:
        value = float(size)
    if not 0 <= value <= LARGEST:
        raise ValueError(f"{function}: {name} must be from 0 to {LARGEST} bytes, got {size!r}")
    return int(value)
