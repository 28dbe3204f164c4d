"""One HTML page of tables and plots, with everything in it."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape

from matplotlib.figure import Figure

from .._info import cuda_version
from . import plot, report
from .results import Document, Row, summarise

STYLE = """
:root { color-scheme: light dark;
  --page: #fff; --ink: #222; --soft: #666; --line: #ccc; --wrong: #b00; --link: #1f5fc4 }
@media (prefers-color-scheme: dark) {
  :root { --page: #16181c; --ink: #ddd; --soft: #999; --line: #3a3d42; --wrong: #ff7a6e; --link: #7fb0ff }
  img { filter: invert(.91) hue-rotate(180deg) }
}
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em;
  color: var(--ink); background: var(--page); overflow-wrap: break-word }
a { color: var(--link) }
h1, h2, h3 { line-height: 1.2 } h2 { border-top: 1px solid var(--line); padding-top: 1em }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .15em .6em; text-align: right; white-space: nowrap }
th { border-bottom: 1px solid var(--soft); background: var(--page); position: sticky; top: 0 }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left }
td:first-child, th:first-child { position: sticky; left: 0; background: var(--page) }
tr.new td { border-top: 1px solid var(--line) } tr.peer td { color: var(--soft) }
tr.wrong td { color: var(--wrong); font-weight: bold }
dl { display: grid; grid-template-columns: max-content auto; gap: .1em 1em } dt { color: var(--soft) }
dd { margin: 0; min-width: 0 } .wide { overflow-x: auto; max-height: 85vh } code { font-size: 13px }
.picture, .wide { background: /* a shadow where there is more to the side */
  linear-gradient(to right, var(--page) 40%, transparent) left / 2em 100% no-repeat local,
  linear-gradient(to left, var(--page) 40%, transparent) right / 2em 100% no-repeat local,
  linear-gradient(to right, #8887, transparent) left / .7em 100% no-repeat scroll,
  linear-gradient(to left, #8887, transparent) right / .7em 100% no-repeat scroll }
.picture { overflow-x: auto } img { width: 100%; max-width: 70em; min-width: 44em }
ul { padding-left: 1.2em }
@media (max-width: 40em) {
  body { margin: 1em auto } h1 { font-size: 1.4em }
  dl, table { font-size: 12px } code { font-size: 11px; word-break: break-all }
}
"""


def page(documents: Sequence[tuple[str, Document]]) -> str:
    """The page for bench files by name."""
    title = "fastlinalg bench: " + ", ".join(name for name, _ in documents)
    body = [f"<h1>{escape(title)}</h1>", *_contents(documents)]
    for i, (name, document) in enumerate(documents):
        body += _section(f"file{i}", name, document)
    return document_of(title, body)


def document_of(title: str, body: Sequence[str]) -> str:
    """A whole page with the style of all of them."""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
            *body,
            "</body>\n</html>\n",
        ]
    )


def _contents(documents: Sequence[tuple[str, Document]]) -> list[str]:
    """Where each file begins, and the ratios over all its shapes."""
    rows = []
    for i, (name, document) in enumerate(documents):
        for line in summarise(document.rows):
            cells = [f'<a href="#file{i}">{escape(name)}</a>', escape(report.machine_name(document))]
            words = [line.op, line.kernel, line.against, str(line.shapes)]
            words += [f"{line.geometric_mean:.3f}", f"{line.minimum:.3f}", line.minimum_at]
            rows.append(cells + [escape(word) for word in words])
    if not rows:
        return []
    head = ["file", "machine", "operation", "kernel", "times as fast as", "shapes", "geometric mean", "minimum", "at"]
    return ["<h2>Over all shapes</h2>", *table(head, rows)]


def _section(anchor: str, name: str, document: Document) -> list[str]:
    body = [f'<h2 id="{anchor}">{escape(name)}</h2>', *_facts(document)]
    pictures = dict(plot.figures(document))
    for op in dict.fromkeys(row.problem.op for row in document.rows):
        rows = [row for row in document.rows if row.problem.op == op]
        body += [f"<h3>{escape(op)}</h3>", _picture(pictures[op], f"{op}, {name}")]
        body += _rows(op, rows, document.peak_gflops)
    notes = "".join(f"<li>{escape(line)}</li>" for line in report.legend(document, summary=False))
    return [*body, f"<ul>{notes}</ul>"]


def _facts(document: Document) -> list[str]:
    header, machine = document.header, document.header["machine"]
    commit = [f"commit {header['commit']}"] if header["commit"] else []  # a wheel's is not known
    facts = {
        "command": f"<code>{escape(header['command'])}</code>",
        "made": escape(", ".join([header["created"], f"fastlinalg {header['version']}", *commit])),
        "against": escape(", ".join(f"{name} {version}" for name, version in header["peers"].items())) or "nothing",
    }
    versions = {name: cuda_version(machine[name]) for name in ("driver", "runtime") if machine.get(name)}
    for name, value in (machine | versions).items():
        if value not in (None, "", 0) and name != "clocks":
            facts[name.replace("_", " ")] = escape(f"{value:.0f}" if isinstance(value, float) else str(value))
    return ["<dl>", *(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in facts.items()), "</dl>"]


def _rows(op: str, rows: list[Row], peak_gflops: float) -> list[str]:
    head, *lines = report.table(op, rows, peak_gflops)
    kinds = ["wrong" if row.wrong else "peer" if row.peer else "" for row in rows]
    return table(head, [[escape(cell) for cell in line] for line in lines], () if op == "host" else kinds)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], kinds: Iterable[str] = ()) -> list[str]:
    """Cells are HTML. A line is drawn where the first cell changes."""
    lines = ['<div class="wide"><table>', "<tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr>"]
    before, kind_of = None, list(kinds) or [""] * len(rows)
    for row, kind in zip(rows, kind_of, strict=True):
        names = " ".join(filter(None, ["new" if row[0] != before else "", kind]))
        before = row[0]
        lines.append(f'<tr class="{names}">' + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>")
    return [*lines, "</table></div>"]


def _picture(figure: Figure, title: str) -> str:
    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=110, transparent=True)
    data = base64.b64encode(memory.getvalue()).decode()
    return f'<div class="picture"><img alt="{escape(title)}" src="data:image/png;base64,{data}"></div>'
