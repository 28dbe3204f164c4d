"""The documentation, without Sphinx: pages are listed, includes find their text, figures and drawings can be made.

`tools/docs` builds the site, runs its examples and follows the links of what it has built.
"""

from __future__ import annotations

import json
import re
import sys
from operator import attrgetter
from pathlib import Path

import pytest

from support.source_tree import ROOT, needs_source_tree

pytestmark = needs_source_tree

DOCS = ROOT / "docs"
NOTES = DOCS / "notes"  # of a day, each named by the page on its subject
AROUND = ("00_machine", "22_next")  # pages of the course that are no step
COURSE = sorted(page for page in (DOCS / "course").glob("[0-9]*.md") if page.stem not in AROUND)
PARTS = [
    "## The question",
    "## Who reads what",
    "## The code",
    "## The counters",
    "## The speed",
    "## See it yourself",
    "## Exercise",
]


@pytest.fixture(scope="module")
def from_docs():
    """docs/ in the path, for figures.py and drawings/, and docs/_ext."""
    before = list(sys.path)
    sys.path[:0] = [str(DOCS), str(DOCS / "_ext")]
    yield
    sys.path[:] = before


def pages():
    left_out = {DOCS / "README.md"}
    return [path for path in sorted(DOCS.rglob("*.md")) if path not in left_out and "_" not in path.parent.name[:1]]


def test_every_page_is_in_one_table_of_contents():
    listed = []
    for page in pages():
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed += [(page.parent / f"{entry}.md").resolve() for entry in entries]
    there = [page for page in pages() if page != DOCS / "index.md" and page.parent != NOTES]
    wrong = [str(page.relative_to(DOCS)) for page in {*listed, *there} if listed.count(page) != there.count(page)]
    assert not wrong, f"to be in one toctree each, of docs/index.md for a start: {wrong}"


def test_notes_are_named_by_a_page():
    linked = "".join(page.read_text() for page in pages() if page.parent != NOTES)
    notes = [page for page in pages() if page.parent == NOTES]
    assert notes and all(f"notes/{note.name})" in linked for note in notes)
    head = ("orphan: true", "| machine |", "| commits |", "| command |")
    assert [note.name for note in notes if not all(part in note.read_text() for part in head)] == []


def includes():
    for page in pages():
        for target, options in re.findall(r"```\{(?:literal)?include\} (\S+)\n(.*?)```", page.read_text(), re.DOTALL):
            yield page, target, dict(re.findall(r"^:([\w-]+): *(.*)$", options, re.MULTILINE))


def test_includes_find_their_text():
    lost = []
    for page, target, options in includes():
        file = (page.parent / target).resolve()
        if not file.is_file():
            lost.append(f"{page.name}: no {target}")
            continue
        lines = file.read_text().splitlines()
        at = -1
        for option in ("start-at", "start-after", "end-at", "end-before"):
            wanted = options.get(option, "").strip('"')
            # As Sphinx looks: from the first line on for a start, behind it for an end.
            found = [n for n, line in enumerate(lines) if wanted in line and n >= at + (option != "end-at")]
            if wanted and not found:
                lost.append(f"{page.name}: {target} has no {wanted!r}")
            elif wanted:
                at = found[0]
    assert not lost, "\n".join(lost)
    assert len(list(includes())) > 25


def test_figures_are_those_of_the_result_files(from_docs):
    import figures

    for page in pages():
        assert not re.search(r"\{\{\s", figures.expand(page.read_text())), page.name
    for place, tables in figures.PLACES.items():
        text = (ROOT / place).read_text()
        assert text == figures.refreshed(text), f"{place}: python docs/figures.py --write"
        assert re.findall(r"<!-- figures: (\w+) -->", text) == tables


def test_ratios_of_the_speed_table_are_those_of_its_lines(from_docs):
    import figures

    head, _, *lines = [line.strip("| ").split(" | ") for line in figures.speed_table().splitlines() if line[:1] == "|"]
    peer = head.index("cuBLAS")
    for line in lines:
        for i in (i for i, name in enumerate(head) if name == "÷ cuBLAS"):
            assert float(line[i]) == pytest.approx(float(line[i - 1]) / float(line[peer]), rel=0.02), line


def test_the_speed_table_of_a_run_of_both_precisions(from_docs, tmp_path, monkeypatch):
    import figures

    def row(kernel, gflops, mhz):
        shape, clocks = {"m": 96, "n": 96, "k": 96}, {"sm_mhz": mhz}
        return {"kernel": kernel, "shape": shape, "gflops": gflops, "error": {"rel_f": 3e-7}, "clocks": clocks}

    means = {"geometric_mean": 1.5, "minimum": 1.25, "against": "cublas"}
    run = {
        "rows": [row("dispatch", 90e3, 1960), row("strict", 45e3, 1980), row("cublas", 30e3, 1980)],
        "summary": [{"kernel": kernel, **means} for kernel in ("dispatch", "strict")],
        "machine": {"gpu": "a GPU", "peak_gflops": 60e3},
        "command": "fastlinalg bench sgemm --shapes 96x96x96 --json somewhere",
        "commit": "0123456789",
    }
    (tmp_path / "speed.json").write_text(json.dumps(run))
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    text = figures.speed_table()
    assert "| 96, K = 96 | 45.0 | 1.50 | 90.0 | 3.00 | 30.0 | 3.0 | 3.0 | 3.0 |" in text
    text = text.replace("\n", " ")
    assert "at most 1.0 % apart" in text and "0123456," in text and "--json" not in text
    assert text.count("1.50 times cuBLAS in the geometric mean") == 2
    assert "3.0 to 3.0 times as fast" in figures.speed_rows() and figures.stale_pictures()


def test_the_reference_has_every_public_name_and_an_example_of_each_function():
    import fastlinalg as fl

    listed = re.findall(r"^   ([\w.]+)$", (DOCS / "reference" / "python.md").read_text(), re.MULTILINE)
    public = [name for name in fl.__all__ if name != "cuda"] + [f"cuda.{name}" for name in fl.cuda.__all__]
    assert len(listed) == len(set(listed)) and set(public) <= set(listed)
    functions = [attrgetter(name)(fl) for name in public]
    functions = [function for function in functions if not isinstance(function, type)]
    assert [f.__name__ for f in functions if not re.search(r"Examples\n *---", f.__doc__)] == []


def words(text: str) -> int:
    """What is read of a page: not the lines of its tables, its marks and its addresses."""
    return len(re.findall(r"[^\W_][\w.,'-]*", re.sub(r"\]\([^)]*\)|<[^>]*>|```\{.*|^:\w.*", "", text, flags=re.M)))


def test_the_front_door_is_short_and_true(from_docs):
    """README, and the pages on how it works; README's example gives what it says."""
    import doctest

    import figures

    readme = (ROOT / "README.md").read_text()
    pages = ("sgemm_strict", "sgemm_accurate", "cpu", "host_pipeline", "gemv_transpose")
    long = {page: words(figures.expand((DOCS / f"{page}.md").read_text())) for page in pages}
    assert words(readme) <= 700 and max(long.values()) <= 800, (words(readme), long)
    assert figures.stale_pictures() == [], figures.COMMAND
    example = re.search(r"```pycon\n(.*?)```", readme, re.DOTALL)[1]
    test = doctest.DocTestParser().get_doctest(example, {}, "README.md", None, None)
    assert test.examples and doctest.DocTestRunner().run(test).failed == 0


def test_drawings(from_docs):
    """Each can be drawn, and is shown with a text for those who do not see it."""
    pytest.importorskip("matplotlib")
    import drawings
    import matplotlib.pyplot as plt

    text = "\n".join(page.read_text() for page in pages())
    shown = re.findall(r":::\{drawing\} (\w+)", text)
    assert sorted(shown) == sorted(drawings.DRAWINGS)
    for draw in drawings.DRAWINGS.values():
        assert draw.__doc__
    for name in drawings.DRAWINGS:
        for panel in drawings.panels(name):
            plt.close(panel)


def test_pages_of_the_course_are_notebooks(from_docs):
    """Whose examples are Python, and whose code is the sources'."""
    import notebooks

    made = notebooks.notebooks(DOCS / "course")
    assert len(made) == len(COURSE) + len(AROUND)
    for name, text in made.items():
        cells = json.loads(text)["cells"]
        code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        for source in code:
            if not source.startswith("%%bash"):
                compile(source, name, "exec")
        shown = "".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
        assert (len(code) > 2 and "```cpp\n" in shown) or Path(name).stem in AROUND
        assert not re.search(r"\{\{\s", shown) and "{literalinclude}" not in shown


def test_links_between_pages():
    lost, site = [], [*pages()]
    for page in [*site, ROOT / "README.md", DOCS / "README.md"]:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[\w-]*)?\)", page.read_text()):
            there = (page.parent / target).resolve()
            off_the_site = page in site and there.suffix == ".md" and DOCS not in there.parents
            if not there.exists() or off_the_site:
                lost.append(f"{page.name}: {target}")
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize("page", COURSE, ids=lambda page: page.stem)
def test_a_step_has_all_its_parts(page):
    text = page.read_text()
    assert re.findall(r"^## .*", text, re.MULTILINE) == PARTS
    for wanted in ("{literalinclude}", ":::{drawing}", "```{doctest}", "```sh", "**Answer.**"):
        assert wanted in text
