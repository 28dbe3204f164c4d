"""Plots of the result files. A plot has a panel a figure, so that its panels stack on narrow screens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import figures
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .draw import INK, drawing

Points = list[tuple[float, float]]
THICK, THIN = 2.8, 1.4
FONT_SIZE = 8.0
LINE = 1.35  # heights of a letter from one name to the next


def rows(file: str) -> list[dict[str, Any]]:
    return list(figures.run_of(file)["rows"])


# Ours stand out, and the peer has the colour of the text.
OF_CURVES = {
    **dict.fromkeys(("default", "fastlinalg", "one thread", "fp16x2"), INK.a),
    **{"strict": INK.copy, "TF32": INK.b, "PyTorch": INK.b, "CuPy": INK.bad, "the link alone": INK.line},
}


def _axes(title: str) -> tuple[Figure, Axes]:
    figure, axes = plt.subplots(figsize=(4.7, 3.1), layout="constrained")
    axes.set_title(title, fontsize=9.5, color=INK.text, loc="left")
    axes.tick_params(labelsize=8, colors=INK.text, which="both")
    axes.patch.set_alpha(0)
    for spine in axes.spines.values():
        spine.set_color(INK.line)
    axes.grid(alpha=0.35, color=INK.line, linewidth=0.5)
    return figure, axes


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


def lines(title: str, curves: Mapping[str, Points], across: str, *, log: bool = False, peak: float = 0.0) -> Figure:
    """Curves over a size, each with its name at its end; `peak` is a level that none can pass."""
    figure, axes = _axes(title)
    ends = []
    for name, points in curves.items():
        colour = OF_CURVES.get(name, INK.text)
        thick = colour in (INK.a, INK.copy)
        axes.plot(*zip(*points, strict=True), "-" if thick else "--", color=colour, linewidth=THICK if thick else THIN)
        ends.append(End(name, *points[-1], colour))
    if peak:
        axes.axhline(peak, color=INK.bad, linewidth=1, linestyle=":")
        ends.append(End("float32 peak", None, peak, INK.bad))
    axes.set_xscale("log", base=2)
    sizes = sorted({x for points in curves.values() for x, _ in points})
    shown = [size for size in sizes if size == 2 ** round(size).bit_length() / 2]
    axes.set_xticks(shown, [f"{size:.0f}" for size in shown])
    axes.minorticks_off()
    axes.set_xlabel(across, fontsize=8.5, color=INK.text)
    axes.set_yscale("log") if log else axes.set_ylim(bottom=0)
    name_curves(axes, ends)
    return figure


def bars(title: str, groups: Mapping[str, Mapping[str, float]]) -> Figure:
    """Groups of lying bars: {group: {name: value}}."""
    figure, axes = _axes(title)
    names = list(dict.fromkeys(name for values in groups.values() for name in values))
    high = 0.8 / len(names)
    for number, name in enumerate(names):
        places = [place + (number + 0.5) * high - 0.4 for place, group in enumerate(groups.values()) if name in group]
        values = [group[name] for group in groups.values() if name in group]
        axes.barh(places, values, high, color=OF_CURVES.get(name, INK.line), label=name)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.invert_yaxis()
    axes.legend(fontsize=8, frameon=False, labelcolor=INK.text)
    return figure


SIDES = {"cublas": "cuBLAS float32", "tf32": "TF32", "strict": "strict", "dispatch": "default"}


def _speed(value: str, names: Mapping[str, str]) -> dict[str, Points]:
    """Curves of speed.json at K = 1024: of "gflops", or "error"."""
    curves: dict[str, Points] = {}
    for row in rows("speed"):
        if row["shape"]["k"] == 1024 and row["kernel"] in names:
            y = row["gflops"] / 1e3 if value == "gflops" else row["error"]["rel_f"]
            curves.setdefault(names[row["kernel"]], []).append((row["shape"]["m"], y))
    return {name: curves[name] for name in names.values() if name in curves}


def _peak() -> float:
    return float(figures.run_of("speed")["machine"]["peak_gflops"]) / 1e3


@drawing
def speed() -> list[Figure]:
    """Two plots over the size of square products with K = 1024 on an H200: TFLOP/s of the default, of strict, and of
    cuBLAS in float32; and the relative error of each, which is the smallest by default.
    """
    return [
        lines("TFLOP/s: more is better", _speed("gflops", SIDES), "M = N, K = 1024", peak=_peak()),
        lines("error of the result: less is better", _speed("error", SIDES), "M = N, K = 1024", log=True),
    ]


@drawing
def strict_speed() -> list[Figure]:
    """TFLOP/s of strict products over their size beside cuBLAS in float32, both below the float32 peak of the H200; and
    the same as a ratio, which is 1 or more at every size.
    """
    curves = _speed("gflops", {name: SIDES[name] for name in ("cublas", "strict")})
    ratio = [(x, ours / theirs) for (x, ours), (_, theirs) in zip(*reversed(curves.values()), strict=True)]
    return [
        lines("TFLOP/s", curves, "M = N, K = 1024", peak=_peak()),
        lines("times the speed of cuBLAS float32", {"strict": ratio}, "M = N, K = 1024"),
    ]


@drawing
def accurate_speed() -> list[Figure]:
    """TFLOP/s over the size of square products: two fp16 terms on top, three bf16 terms below, cuBLAS in float32 at the
    bottom; and the error of random normal data over K, which grows for cuBLAS and strict, and least by default.
    """
    names = {"cublas": "cuBLAS float32", "bf16x6": "bf16x6", "fp16x2": "fp16x2"}
    curves: dict[str, Points] = {name: [] for name in names.values()}
    for row in rows("h200-sgemm-accurate-rows"):
        if row["shape"]["k"] == 1024 and row["kernel"] in names:
            curves[names[row["kernel"]]].append((row["shape"]["m"], row["gflops"] / 1e3))
    return [
        lines("TFLOP/s", curves, "M = N, K = 1024"),
        lines("relative error, normal data, M = N = 1024", _errors("normal"), "K", log=True),
    ]


def _errors(data: str) -> dict[str, Points]:
    """Norms of the error over K of one kind of data, at M = N = 1024."""
    names = {"cuBLAS float32": "cuBLAS float32", "strict": "strict", "dispatch": "default"}
    curves: dict[str, Points] = {name: [] for name in names.values()}
    for row in rows("accuracy/h200"):
        if (row["data"], row["size"]) == (data, 1024):
            for product, name in names.items():
                curves[name].append((row["k"], row["errors"][product]["norm"]))
    return {name: sorted(points) for name, points in curves.items()}


@drawing
def error_over_k() -> list[Figure]:
    """The relative error over K of four kinds of data at M = N = 1024: cuBLAS in float32 and strict grow with K, the
    default stays lower on all of them.
    """
    kinds = ("normal", "uniform(0, 1)", "exp(normal)", "12 decades")
    return [lines(kind, _errors(kind), "K", log=True) for kind in kinds]


@drawing
def cpu_speed() -> list[Figure]:
    """GFLOP/s of square products on one thread of a Zen 4, and on sixteen threads of a Xeon, each above
    NumPy's OpenBLAS.
    """
    panels = []
    for file, title in ("zen4-sgemm-1", "Zen 4, one thread"), ("h200-host-sgemm-16", "Xeon, sixteen threads"):
        curves: dict[str, Points] = {}
        for row in rows(file):
            name = {"dispatch": "fastlinalg", "numpy": "NumPy (OpenBLAS)"}[row["kernel"]]
            curves.setdefault(name, []).append((row["shape"]["m"], row["gflops"]))
        panels.append(lines(f"GFLOP/s, {title}", curves, "M = N, K = 1024"))
    return panels


@drawing
def host_speed() -> list[Figure]:
    """Milliseconds of whole calls from NumPy to NumPy over the size of cubes: the time that the link alone needs is at
    the bottom, fastlinalg a little above it, CuPy, PyTorch and NumPy some times higher.
    """
    names = {"accurate": "fastlinalg", "cupy": "CuPy", "torch": "PyTorch", "numpy": "NumPy, CPU"}
    panels = []
    for result, title in ("fresh", "into a new array"), ("out", "into an array that is there (out=)"):
        curves: dict[str, Points] = {}
        for row in rows("h200-numpy-to-numpy"):
            m, n, k = row["shape"].values()
            alike = row["result"] == result and not row["pause_ms"] and m == n == k and m >= 256
            if row["kernel"] in names and alike:
                curves.setdefault(names[row["kernel"]], []).append((m, row["median_us"] / 1e3))
                if row["kernel"] == "accurate" and m >= 512:
                    curves.setdefault("the link alone", []).append((m, row["link_us"] / 1e3))
        panels.append(lines(f"ms, {title}", curves, "M = N = K", log=True))
    return panels


@drawing
def memory_bound_speed() -> list[Figure]:
    """GB/s of matrix-vector products of 16384 rows, about twice those of cuBLAS; and of a transpose of 2048 x 512,
    which passes a plain copy.
    """
    vectors: dict[str, dict[str, float]] = {}
    for row in rows("h200-sgemv"):
        if row["kernel"] in ("dispatch", "torch"):
            flag = {"N": "A x", "T": "Aᵀx"}[row["trans"]]
            name = {"dispatch": "fastlinalg", "torch": "cuBLAS"}[row["kernel"]]
            vectors.setdefault(f"{flag}, {row['shape']['m']} × {row['shape']['n']}", {})[name] = row["gbs"]
    found = {row["kernel"]: row["gbs"] for row in rows("h200-transpose")}
    names = {"dispatch": "fastlinalg", "copy": "a copy", "torch": "PyTorch", "cupy": "CuPy"}
    transposes = {"2048 × 512": {names[kernel]: found[kernel] for kernel in names}}
    return [
        bars("matrix times vector, GB/s", vectors),
        bars("transpose, GB/s", transposes),
    ]
