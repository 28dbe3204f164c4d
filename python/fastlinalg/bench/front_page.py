"""The page above asv's own: today's ratios to peers, and how they came about, from asv's results."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from .html import document_of, table
from .over_commits import History, Series, mean_ratio

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


def page(histories: Sequence[History], asv: str = "index.html", commits: str = "commits.html") -> str:
    """HTML. `asv` and `commits` are where asv's pages and the list of commits lie, seen from this page."""
    body = [
        "<h1>fastlinalg over its commits</h1>",
        "<p>How many times as fast as a peer in the same process, the two by turns; at the newest commit, at the first"
        " one with a figure, and at each between. More is better. "
        f'<a href="{escape(asv)}">All benchmarks, with times</a> · <a href="{escape(asv)}#/regressions">regressions</a>'
        f' · <a href="{escape(commits)}">commits</a></p>',
    ]
    for history in histories:
        body += _machine(history, asv, commits)
    return document_of("fastlinalg over its commits", body)


def _machine(history: History, asv: str, commits: str) -> list[str]:
    facts = {name: value for name, value in history.machine.items() if name != "machine" and value != "none"}
    newest = history.commits[-1]
    link = f'<a href="{escape(commits)}#{newest}">{newest[:9]}</a>'
    lines = [f'<h2 id="{escape(history.machine["machine"])}">{escape(history.machine["machine"])}</h2>', "<dl>"]
    lines += [f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items()]
    lines += [f"<dt>commits</dt><dd>{len(history.commits)}, the newest {link}</dd></dl>"]
    ratios = [series for series in history.series if series.peer]
    lines += ["<h3>Today, by kind</h3>", *_summary(ratios, history.commits)]
    return [*lines, "<h3>Each</h3>", *_each(ratios, history.commits, asv)]


def _groups(ratios: Sequence[Series]) -> dict[tuple[str, str], list[Series]]:
    found: dict[tuple[str, str], list[Series]] = {}
    for series in ratios:
        found.setdefault((series.group, series.peer), []).append(series)
    return found


def _summary(ratios: Sequence[Series], commits: Sequence[str]) -> list[str]:
    rows = []
    for (group, peer), members in _groups(ratios).items():
        first, last = mean_ratio(members, "first"), mean_ratio(members, "last")
        if first is None or last is None:
            continue
        means = []
        for commit in commits:
            there = [Series(s.name, s.params, s.unit, [p]) for s in members for p in s.points if p[0] == commit]
            if len(there) == len(members) and (mean := mean_ratio(there, "last")):
                means.append((commit, mean))
        cells = [TITLES.get(group, group), PEERS.get(peer, peer), str(len(members)), *_times(last, first)]
        rows.append([*map(escape, cells), sparkline(means, commits)])
    return table(["operation", "times as fast as", "cases", "today", "at first", "over the commits"], rows)


def _each(ratios: Sequence[Series], commits: Sequence[str], asv: str) -> list[str]:
    rows = []
    for series in ratios:
        title = escape(TITLES.get(series.group, series.group))
        link = f'<a href="{escape(asv)}#{quote(series.name)}">{escape(", ".join(series.params))}</a>'
        cells = [escape(PEERS.get(series.peer, series.peer)), *_times(series.last, series.first)]
        rows.append([title, link, *cells, sparkline(series.points, commits)])
    return table(["operation", "parameters", "times as fast as", "today", "at first", "over the commits"], rows)


def _times(last: float, first: float) -> list[str]:
    return [f"{1 / value:.2f}" if value > 0 else "" for value in (last, first)]


def sparkline(points: Sequence[tuple[str, float]], commits: Sequence[str]) -> str:
    """Our speed beside the peer's over all commits, as SVG with its own words; the line at 1 is the peer."""
    at = {commit: i for i, commit in enumerate(commits)}
    speeds = [(at[commit], 1 / value) for commit, value in points if value > 0]
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
