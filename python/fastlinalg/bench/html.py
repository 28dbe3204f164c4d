"""One HTML page of tables and plots, with everything in it."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape

from matplotlib.figure import Figure

from . import host_report, plot, report
from .host import HostRow
from .results import Document, Row, summarise

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222 }
h1, h2, h3 { line-height: 1.2 } h2 { border-top: 1px solid #ccc; padding-top: 1em }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .15em .6em; text-align: right; white-space: nowrap }
th { border-bottom: 1px solid #888; background: #fff; position: sticky; top: 0 }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left }
tr.new td { border-top: 1px solid #ddd } tr.peer td { color: #777 } tr.wrong td { color: #b00; font-weight: bold }
img { max-width: 100% } dl { display: grid; grid-template-columns: max-content auto; gap: .1em 1em } dt { color: #777 }
dd { margin: 0 } .wide { overflow-x: auto } code { font-size: 13px }
"""


def page(documents: Sequence[tuple[str, Document]]) -> str:
    """The page for bench files by name."""
    title = "fastlinalg bench: " + ", ".join(name for name, _ in documents)
    body = [f"<h1>{escape(title)}</h1>", *_contents(documents)]
    for i, (name, document) in enumerate(documents):
        body += _section(f"file{i}", name, document)
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
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
    head = ["file", "machine", "operation", "", "times as fast as", "shapes", "geometric mean", "minimum", "at"]
    return ["<h2>Over all shapes</h2>", *_table(head, rows)]


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
    facts = {
        "command": f"<code>{escape(header['command'])}</code>",
        "made": escape(f"{header['created']}, fastlinalg {header['version']}, commit {header['commit'] or 'unknown'}"),
        "against": escape(", ".join(f"{name} {version}" for name, version in header["peers"].items())) or "nothing",
    }
    for name, value in machine.items():
        if value is not None and name != "clocks":
            facts[name.replace("_", " ")] = escape(f"{value:.0f}" if isinstance(value, float) else str(value))
    return ["<dl>", *(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in facts.items()), "</dl>"]


def _rows(op: str, rows: list[Row], peak_gflops: float) -> list[str]:
    if op == "host":
        head, *lines = host_report.cells([row for row in rows if isinstance(row, HostRow)])
        return _table(head, [[escape(cell) for cell in line] for line in lines])
    peers = list(dict.fromkeys(name for row in rows for name in row.ratios))
    lines = [[escape(cell) for cell in report.cells(row, peak_gflops, peers)] for row in rows]
    kinds = ["wrong" if row.wrong else "peer" if row.peer else "" for row in rows]
    return _table(report.columns(op, peers), lines, kinds)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], kinds: Iterable[str] = ()) -> list[str]:
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
    figure.savefig(memory, format="png", dpi=110)
    data = base64.b64encode(memory.getvalue()).decode()
    return f'<img alt="{escape(title)}" src="data:image/png;base64,{data}">'
