"""How a plot shows who is who: colours, and names where the reader looks, at the ends of curves or beside the axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

FONT_SIZE = 8.0
LINE = 1.35  # heights of a letter from one name to the next


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


@dataclass(frozen=True)
class End:
    """Where a curve ends; without `x` it is a line across the whole plot."""

    name: str
    x: float | None
    y: float
    colour: Any


def apart(wanted: Sequence[float], gap: float, top: float = 1.0) -> list[float]:
    """Ascending places at least `gap` apart and as close as that allows to the ascending ones that are `wanted`.

    What would be above `top` goes down, and takes the others with it.
    """
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + gap) if places else place)
    limit = max(top, (len(places) - 1) * gap)
    for i in range(len(places) - 1, -1, -1):
        places[i] = min(places[i], limit)
        limit = places[i] - gap
    return places


def name_curves(axes: Any, ends: Sequence[End]) -> None:
    """Write each name to the right of the axes at the height where its curve ends, in its colour."""
    axes.autoscale_view()
    points = axes.figure.get_size_inches()[1] * 72 * 0.8  # about what the axes have of the figure's height
    to_axes = axes.transData + axes.transAxes.inverted()
    right = axes.get_xlim()[1]
    heights = {end: float(to_axes.transform((end.x or right, end.y))[1]) for end in ends}
    heights = {end: min(max(height, 0.0), 1.0) for end, height in heights.items() if math.isfinite(height)}
    order = sorted(heights, key=heights.__getitem__)
    places = apart([heights[end] for end in order], FONT_SIZE * LINE / points)
    for end, place in zip(order, places, strict=True):
        axes.annotate(
            end.name,
            xy=(end.x or right, end.y),
            xytext=(1.03, place),
            textcoords="axes fraction",
            va="center",
            fontsize=FONT_SIZE,
            color=end.colour,
            arrowprops={"arrowstyle": "-", "relpos": (0, 0.5), "color": end.colour, "linewidth": 0.5, "alpha": 0.5},
            annotation_clip=False,
        )


def legend_beside(axes: Any) -> None:
    """For bars and points: the legend to the right of the axes, where it hides nothing."""
    axes.legend(fontsize=FONT_SIZE, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
