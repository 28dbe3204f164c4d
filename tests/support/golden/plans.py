"""What rules say of calls, in ``plans.json``: in any build on any machine the same."""

from __future__ import annotations

from .cuts import cuts
from .estimates import ON_X86, estimates
from .sums import sums
from .tables import Table, read

PARTS = {"sums": sums, "estimates": estimates, "cuts": cuts}


def of_part(part: str) -> dict[str, Table]:
    return {f"{part}: {table}": rows for table, rows in PARTS[part]().items()}


def plans() -> dict[str, Table]:
    return {table: rows for part in PARTS for table, rows in of_part(part).items()}


def stored(part: str) -> dict[str, Table]:
    """Those of kernels that are in every build on this processor."""
    return {
        table: rows
        for table, rows in read("plans").items()
        if table.startswith(f"{part}: ") and (ON_X86 or not table.startswith("estimates: zen4"))
    }
