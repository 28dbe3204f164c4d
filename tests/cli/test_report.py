"""``python -m fastlinalg report``: one page with everything in it."""

from __future__ import annotations

import contextlib
import html.parser as html_parser
import io
import json

import pytest

from fastlinalg.bench.results import Document
from fastlinalg.cli import main
from support.command import here, needs_plot
from support.requirements import mostly_exhaustive
from support.source_tree import ROOT

pytestmark = needs_plot
html = pytest.importorskip("fastlinalg.bench.html", exc_type=ImportError)
RESULTS = ROOT / "benchmarks" / "results"


class Page(html_parser.HTMLParser):
    """Tags that match, cells by table, and what the page refers to."""

    VOID = ("meta", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.links += [given[name] for name in ("src", "href") if name in given]
        self.anchors |= {given["id"]} if "id" in given else set()
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th", "a", "code") and {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data


def test_a_page_of_several_files(tmp_path):
    """Every row of every file, whichever operation; nothing from outside; names that are not HTML."""
    line = "--quick --device cpu --repeats 2 --against numpy --json"
    here(f"bench all --random 3 --kernels dispatch {line} kernels.json", cwd=tmp_path)
    here(f"bench host --shapes 20,30x20x10:F {line} 'a<b>.json'", cwd=tmp_path)
    said = here("report kernels.json 'a<b>.json' -o page.html", cwd=tmp_path).stdout
    assert said == f"{tmp_path / 'page.html'}\n"
    page = Page((tmp_path / "page.html").read_text())
    assert all(link.startswith(("data:image/png;base64,", "#")) for link in page.links)
    assert {link[1:] for link in page.links if link[0] == "#"} <= page.anchors
    assert sum(link.startswith("data:") for link in page.links) == 4 and "a<b>" in page.text

    kernels = json.loads((tmp_path / "kernels.json").read_text())
    summary, *tables, host = page.tables
    assert len(tables) == 3 and sum(len(table) - 1 for table in tables) == len(kernels["rows"])
    names = {(row["op"], row["kernel"]) for row in kernels["rows"]}
    assert {line[1] for table in tables for line in table[1:]} == {kernel for _, kernel in names}
    assert [line[:2] for line in host[1:]] == [
        [shape, name] for shape in ("20x20x20", "30x20x10 F") for name in ("accurate", "strict", "numpy")
    ]
    shown = [float(line[6]) for line in summary[1:] if line[0] == "kernels"]
    assert shown == pytest.approx([line["geometric_mean"] for line in kernels["summary"]], rel=1e-5, abs=6e-4)
    assert all(len(line) == len(table[0]) for table in page.tables for line in table)


@pytest.mark.exhaustive
@pytest.mark.skipif(not RESULTS.is_dir(), reason="needs the source tree")
def test_the_committed_results(tmp_path):
    files = sorted(RESULTS.glob("*.json"))
    here(f"report {' '.join(map(str, files))}", cwd=tmp_path)
    page = Page((tmp_path / "report.html").read_text())
    assert all(path.stem in page.text for path in files) and "NVIDIA H200" in page.text


def test_wrong_files(tmp_path):
    (tmp_path / "text.json").write_text("no json")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "deep.json").write_text("[" * 100000)
    (tmp_path / "new.json").write_text('{"schema": 99, "rows": []}')
    (tmp_path / "half.json").write_text('{"schema": 1, "rows": []}')
    for name, word in (
        ("text", "not JSON"),
        ("deep", "not JSON"),
        ("list", "not a file"),
        ("new", "schema 99"),
        ("half", "incomplete"),
    ):
        text = here(f"report {name}.json", 2, cwd=tmp_path).stderr
        assert word in text and f"{name}.json" in text
    for name in ("missing", "long" * 75):
        assert f"{name}.json" in here(f"report {name}.json", 2, cwd=tmp_path).stderr
    said = here("report .", 2, cwd=tmp_path).stderr
    assert ".: a folder, and a report is made of files of fastlinalg bench --json" in said
    assert not (tmp_path / "report.html").exists()


def test_what_is_not_known_is_not_in_the_page():
    """The commit of a wheel, the driver of a machine without one."""
    header = {"op": "sgemm", "created": "today", "commit": None, "version": "1.2.3", "command": "x", "peers": {}}
    machine = {"gpu": None, "cpu": "a CPU", "driver": 0, "runtime": 0, "busy": ""}
    facts = " ".join(html._facts(Document(header | {"machine": machine}, 1.0)))
    assert "unknown" not in facts and "driver" not in facts and "<dd>today, fastlinalg 1.2.3</dd>" in facts


@pytest.mark.parametrize(
    "value",
    mostly_exhaustive([None, "<script>", [], -1, float("nan"), 10**400], None, "<script>"),
    ids=lambda value: str(value)[:9],
)
def test_files_with_something_else_in_one_place(value, tmp_path):
    """A page or an error that names the file, whatever a part of a file holds."""
    good = RESULTS / "zen4-sgemm-1.json"
    if not good.exists():
        pytest.skip("needs the source tree")
    data = json.loads(good.read_text())
    data["rows"] = data["rows"][:2]
    parts = [(data, "machine"), (data, "peers"), (data, "skipped"), (data["machine"], "cpu"), (data, "command")]
    parts += [(data["rows"][1], name) for name in ("op", "kernel", "batch", "ratios", "samples_us", "error", "shape")]
    for where, name in parts:
        before = where[name]
        where[name] = value
        (tmp_path / "odd.json").write_text(json.dumps(data))
        where[name] = before
        written = io.StringIO()
        with contextlib.redirect_stderr(written), contextlib.redirect_stdout(io.StringIO()):
            status = main(["report", str(tmp_path / "odd.json"), "-o", str(tmp_path / "odd.html")])
        assert status == 0 or (status == 2 and "odd.json" in written.getvalue()), (name, written.getvalue())
        if status == 0:
            assert "<script>" not in (tmp_path / "odd.html").read_text()
