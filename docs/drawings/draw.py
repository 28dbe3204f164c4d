"""What the drawings of the documentation share: colours, matrices of cells, arrows, time lines.

A drawing is a function that returns a figure, or a list of panels, which stand beside each other where there is room
and stack on narrow screens; its docstring says what can be seen, for those who do not see it. It is drawn for light
pages; what is dark is the same with other colours.
`drawing` registers it under its name. `render` writes each panel as two SVG files, NAME-0-light.svg and
NAME-0-dark.svg, when the site is built; `render_for_both` as one, NAME-0.svg, for pages that cannot choose.
"""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

plt.rcParams["svg.hashsalt"] = "fastlinalg"  # the same file every time
plt.rcParams["svg.fonttype"] = "none"  # text stays text: half of the bytes, found by a search and read aloud


@dataclass(frozen=True)
class Colours:
    """On one background, the page's. A, B and C are the operands and the result in every drawing."""

    page: str
    text: str
    line: str
    empty: str
    a: str
    b: str
    c: str
    bad: str
    copy: str
    wait: str


INK = Colours(
    *("#ffffff", "#1f2328", "#8c959f", "#eef1f4"),
    *("#6c9ff0", "#eda64b", "#63bd7b", "#e8737f", "#a78be0", "#d0d7de"),
)
DARK = Colours(
    *("#0d1117", "#d7dde3", "#6e7681", "#262c33"),
    *("#3c6fc4", "#b0701c", "#2f8a4a", "#b8404f", "#7657b8", "#3d444d"),
)

Drawing = Callable[[], "Figure | list[Figure]"]
DRAWINGS: dict[str, Drawing] = {}


def drawing(function: Drawing) -> Drawing:
    """Register a drawing under the name of its function."""
    DRAWINGS[function.__name__] = function
    return function


def panes(*edges: float) -> Callable[[Drawing], Drawing]:
    """A drawing whose parts between these places, counted from the left, are panels."""

    def cut(whole: Drawing) -> Drawing:
        @functools.wraps(whole)
        def parts() -> list[Figure]:
            return [_part(whole(), left, right) for left, right in itertools.pairwise(edges)]

        return parts

    return cut


def _part(figure: Figure | list[Figure], left: float, right: float) -> Figure:
    assert isinstance(figure, Figure)
    axes, (wide, high) = figure.axes[0], figure.get_size_inches()
    begin, end = axes.get_xlim()
    axes.set_xlim(left, right)
    figure.set_size_inches(wide * (right - left) / (end - begin), high)
    for text in [*axes.texts]:  # which no axes clip
        if not left <= text.get_position()[0] < right:
            text.remove()
    return figure


def canvas(width: float, height: float, xlim: float, ylim: float) -> tuple[Figure, Axes]:
    """A figure with one pair of axes whose units are as long down as across; y counts downwards."""
    figure = plt.figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, xlim)
    axes.set_ylim(ylim, 0)
    axes.set_aspect("equal")
    axes.axis("off")
    return figure, axes


def cells(
    axes: Axes,
    at: tuple[float, float],
    shape: tuple[int, int],
    size: float = 1.0,
    filled: dict[tuple[int, int], str] | None = None,
    height: float | None = None,
) -> None:
    """A matrix of `shape` cells from its corner `at` on; `filled` gives some of them a colour."""
    high = size if height is None else height
    for row in range(shape[0]):
        for col in range(shape[1]):
            colour = (filled or {}).get((row, col))
            place = (at[0] + col * size, at[1] + row * high)
            axes.add_patch(
                Rectangle(place, size, high, facecolor=colour or INK.empty, edgecolor=INK.line, linewidth=0.4)
            )


def frame(axes: Axes, colour: str, at: tuple[float, float], width: float, height: float, line: float = 1.6) -> None:
    """An outline around cells."""
    axes.add_patch(Rectangle(at, width, height, fill=False, edgecolor=colour, linewidth=line))


def block(axes: Axes, colour: str, at: tuple[float, float], width: float, height: float, alpha: float = 1.0) -> None:
    """A filled rectangle."""
    axes.add_patch(Rectangle(at, width, height, facecolor=colour, edgecolor="none", alpha=alpha))


def box(axes: Axes, at: tuple[float, float], width: float, height: float, text: str, colour: str) -> None:
    """A named part: a rounded frame with a text in it."""
    style = "round,pad=0,rounding_size=0.25"
    axes.add_patch(FancyBboxPatch(at, width, height, boxstyle=style, facecolor="none", edgecolor=colour, linewidth=1.5))
    label(axes, at[0] + width / 2, at[1] + height / 2, text)


def label(axes: Axes, x: float, y: float, text: str, **options: object) -> None:
    """A text, centred unless told otherwise."""
    settings = {"ha": "center", "va": "center", "fontsize": 9, "color": INK.text} | options
    axes.text(x, y, text, **settings)


def arrow(axes: Axes, colour: str, start: tuple[float, float], end: tuple[float, float], line: float = 1.3) -> None:
    """From `start` to `end`."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": line})


def bars(axes: Axes, y: float, parts: Iterable[tuple[float, float, str, str]], high: float = 0.8) -> None:
    """A line of a time line: parts of (start, end, colour, text)."""
    for start, end, colour, text in parts:
        axes.add_patch(Rectangle((start, y), end - start, high, facecolor=colour, edgecolor=INK.line, linewidth=0.5))
        if text:
            label(axes, (start + end) / 2, y + high / 2, text, fontsize=8)


def panels(name: str) -> list[Figure]:
    """The figures of a drawing, one or several."""
    drawn = DRAWINGS[name]()
    return drawn if isinstance(drawn, list) else [drawn]


def as_svg(figure: Figure, **options: object) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", bbox_inches="tight", pad_inches=0.05, **options)
    plt.close(figure)
    return file.getvalue()


def coloured(text: str, colours: Colours | None) -> str:
    """A drawing in other colours, or in those that variables of its style have."""
    for part, colour in asdict(INK).items():
        text = text.replace(f": {colour}", f": {getattr(colours, part) if colours else f'var(--{part})'}")
    return text


def render(folder: Path) -> None:
    """Write all drawings, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in DRAWINGS:
        for number, figure in enumerate(panels(name)):
            text = as_svg(figure, transparent=True, metadata={"Date": None})
            (folder / f"{name}-{number}-light.svg").write_text(text)
            (folder / f"{name}-{number}-dark.svg").write_text(coloured(text, DARK))


def render_for_both(folder: Path, names: Iterable[str], source: str) -> None:
    """Write drawings that are light or dark, as their reader's pages are; `source` is noted in each file."""
    light, dark = (" ".join(f"--{name}: {value};" for name, value in asdict(of).items()) for of in (INK, DARK))
    style = f":root {{ {light} }} @media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    for name in names:
        for number, figure in enumerate(panels(name)):
            text = as_svg(figure, facecolor=INK.page, metadata={"Date": None, "Description": source})
            text = coloured(text, None).replace('<style type="text/css">', f'<style type="text/css">\n{style}\n', 1)
            (folder / f"{name}-{number}.svg").write_text(text)
