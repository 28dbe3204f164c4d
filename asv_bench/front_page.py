"""The page above asv's own: today's ratios to peers, and how they came about, from asv's results."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastlinalg.bench.html import document_of, table

RATIO = "track_ratio_to_"
TITLES = {
    "cpu.Products": "squares, K = 1024",
    "cpu.Cubes": "cubes",
    "cpu.Transposed": "both operands transposed",
    "cpu.Thin": "one dimension short",
    "cpu.Batches": "stacks of products",
    "cpu.Addend": "products with an addend",
    "cpu.Syrk": "A times its transpose",
    "cpu.Vectors": "matrix times vector",
    "cpu.Transposes": "transposed copies",
    "calls.Call": "calls of 2 and 8",
    "host.Square": "squares, from NumPy to NumPy",
    "gpu.Products": "on the GPU: squares, K = 1024",
    "gpu.Cubes": "on the GPU: cubes",
    "gpu.Thin": "on the GPU: one dimension short",
    "gpu.Batches": "on the GPU: stacks of products",
    "gpu.Syrk": "on the GPU: A times its transpose",
    "gpu.Vectors": "on the GPU: matrix times vector",
    "gpu.Transposes": "on the GPU: transposed copies",
}
PEERS = {"numpy": "NumPy", "cublas": "cuBLAS", "copy": "a copy", "ladder": "the ladder's last step"}
WIDTH, HEIGHT = 120, 22


@dataclass
class Series:
    """The ratio to one peer with one choice of parameters on one machine: at each commit, lower is better."""

    name: str
    params: tuple[str, ...]
    points: dict[str, float] = field(default_factory=dict)

    @property
    def title(self) -> tuple[str, str]:
        """Of the operation and of the peer, as HTML."""
        group, _, method = self.name.rpartition(".")
        peer = method.removeprefix(RATIO)
        return escape(TITLES.get(group, group)), escape(PEERS.get(peer, peer))


def ratios(folder: Path) -> tuple[list[str], list[Series]]:
    """Of one machine: the commits in the order of their dates, and what each benchmark found at them."""
    benchmarks = json.loads((folder.parent / "benchmarks.json").read_text())
    files = [json.loads(file.read_text()) for file in folder.glob("*.json") if file.name != "machine.json"]
    files.sort(key=lambda data: data["date"])
    found: dict[tuple[str, tuple[str, ...]], Series] = {}
    for data in files:
        for name, params, value in _figures(data, benchmarks):
            found.setdefault((name, params), Series(name, params)).points[data["commit_hash"]] = value
    order = {name: i for i, name in enumerate(benchmarks)}
    return [data["commit_hash"] for data in files], sorted(found.values(), key=lambda series: order[series.name])


def _figures(data: dict[str, Any], benchmarks: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Those of ratios that still are what they were then."""
    for name, row in data["results"].items():
        entry = dict(zip(data["result_columns"], row, strict=False))
        if RATIO not in name or entry["result"] is None or entry["version"] != benchmarks.get(name, {}).get("version"):
            continue
        for params, value in zip(itertools.product(*entry["params"]), entry["result"], strict=True):
            if value is not None and math.isfinite(value) and value > 0:
                yield name, tuple(param.strip("'") for param in params), float(value)


def page(results: Path, asv: str = "index.html", commits: str = "commits.html") -> str:
    """HTML. `asv` and `commits` are where asv's pages and the list of commits lie, seen from this page."""
    body = [
        "<h1>fastlinalg over its commits</h1>",
        "<p>How many times as fast as a peer in the same process, the two by turns; at the newest commit, at the first"
        " one with a figure, and at each between. More is better here; asv's pages behind the links show the inverse,"
        " our time as a multiple of the peer's, where less is better. "
        f'<a href="{escape(asv)}">All benchmarks, with times</a> · <a href="{escape(asv)}#/regressions">regressions</a>'
        f' · <a href="{escape(commits)}">commits</a></p>',
    ]
    for file in sorted(results.glob("*/machine.json")):
        known, series = ratios(file.parent)
        if known:
            body += _machine(json.loads(file.read_text()), known, series, asv, commits)
    return document_of("fastlinalg over its commits", body)


def _machine(facts: dict[str, Any], known: list[str], series: list[Series], asv: str, commits: str) -> list[str]:
    name, newest = escape(facts["machine"]), known[-1]
    shown = {key: str(value) for key, value in facts.items() if key not in ("machine", "version") and value != "none"}
    lines = [f'<h2 id="{name}">{name}</h2>', "<dl>"]
    lines += [f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in shown.items()]
    link = f'<a href="{escape(commits)}#{newest}">{newest[:9]}</a>'
    lines.append(f"<dt>commits</dt><dd>{len(known)}, the newest {link}</dd></dl>")
    head = ["operation", "today", "at first", "over the commits", "times as fast as"]  # today is seen on any screen
    lines += ["<h3>Today, by kind</h3>", *table([*head, "cases"], list(_summary(series, known)))]
    return [*lines, "<h3>Each</h3>", *table(head, _each(series, known, asv))]


def _summary(series: Sequence[Series], known: Sequence[str]) -> Iterator[list[str]]:
    """A line for each kind of products and peer: geometric means, at commits that have all of its cases."""
    groups: dict[tuple[str, str], list[Series]] = {}
    for one in series:
        groups.setdefault(one.title, []).append(one)
    for (title, peer), members in groups.items():
        first, last = (statistics.geometric_mean([list(one.points.values())[at] for one in members]) for at in (0, -1))
        whole = [commit for commit in known if all(commit in one.points for one in members)]
        means = {commit: statistics.geometric_mean([one.points[commit] for one in members]) for commit in whole}
        yield [title, f"{1 / last:.2f}", f"{1 / first:.2f}", sparkline(means, known), peer, str(len(members))]


def _each(series: Sequence[Series], known: Sequence[str], asv: str) -> list[list[str]]:
    rows = []
    for one in series:
        title, peer = one.title
        link = f'<a href="{escape(asv)}#{quote(one.name)}">{escape(", ".join(one.params))}</a>'
        first, *_, last = [*one.points.values()] * 2
        speeds = [f"{1 / last:.2f}", f"{1 / first:.2f}"]
        rows.append([f"{title}<br>{link}", *speeds, sparkline(one.points, known), peer])
    return rows


def sparkline(points: dict[str, float], commits: Sequence[str]) -> str:
    """Our speed beside the peer's over all commits, as SVG with its own words; the line at 1 is the peer."""
    at = {commit: i for i, commit in enumerate(commits)}
    speeds = [(at[commit], 1 / value) for commit, value in points.items()]
    if not speeds:
        return ""
    low, high = min(1.0, *(v for _, v in speeds)), max(1.0, *(v for _, v in speeds))
    across, up = (WIDTH - 4) / max(1, len(commits) - 1), (HEIGHT - 4) / ((high - low) or 1.0)

    def place(i: float, value: float) -> str:
        return f"{2 + i * across:.1f},{HEIGHT - 2 - (value - low) * up:.1f}"

    line = " ".join(place(i, value) for i, value in speeds)
    last_x, last_y = place(*speeds[-1]).split(",")
    peer_y = place(0, 1.0).split(",")[1]
    words = ", ".join(f"{commits[i][:9]} {value:.2f}" for i, value in speeds)
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img"><title>{escape(words)}</title>'
        f'<line x1="0" x2="{WIDTH}" y1="{peer_y}" y2="{peer_y}" stroke="currentColor" stroke-opacity=".35" '
        f'stroke-dasharray="2 3"></line><polyline points="{line}" fill="none" stroke="currentColor"></polyline>'
        f'<circle cx="{last_x}" cy="{last_y}" r="2" fill="currentColor"></circle></svg>'
    )
