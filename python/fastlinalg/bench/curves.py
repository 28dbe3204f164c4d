"""How a plot shows who is who: colours, and the legend."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

FONT_SIZE = 8.0

# The same in every plot: what the library chooses stands out, then what it is compared with.
FIXED = {
    "dispatch": "#0b3fd1",
    "accurate": "#0b3fd1",
    "strict": "#b0127b",
    "numpy": "black",
    "cublas": "black",
    "torch": "#d9480f",
    "tf32": "#8a6d00",
    "scipy": "0.45",
    "cupy": "0.45",
    "copy": "0.75",
}
THICK, MEDIUM, THIN = 2.8, 2.0, 0.9


def colours(names: Iterable[str]) -> dict[str, Any]:
    """By name; those that are not fixed differ from each other as long as there are not many, and from blue."""
    from matplotlib import colormaps

    others = [colormaps["tab20"](i) for i in range(2, 20)]
    rest = [name for name in names if name not in FIXED]
    return FIXED | {name: others[i % len(others)] for i, name in enumerate(rest)}


def width(name: str, peer: bool) -> float:
    """Of a line."""
    return THICK if name in ("dispatch", "accurate") else MEDIUM if peer or name in FIXED else THIN


def legend_beside(axes: Any) -> None:
    """The legend to the right of the axes, where it hides nothing."""
    axes.legend(fontsize=FONT_SIZE, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
