"""What the documentation adds to Sphinx: figures from result files, drawings, links between the notebooks.

- `{{ name arguments }}` in a page is a figure of docs/figures.py.
- The directive `drawing` shows a drawing of docs/drawings in the colours of the page.
- `docs/PAGE.md` between backticks becomes a link to that page, so that files that are read without a build need none.
- With the tag `course` the course alone is built, as one file to print; links to other pages become plain text.
- Beside the pages of the course lie their notebooks (notebooks.py).
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

from docutils import nodes
from numpydoc.docscrape_sphinx import SphinxDocString
from sphinx.application import Sphinx
from sphinx.directives.code import LiteralInclude
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

DOCS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(DOCS))

import drawings  # noqa: E402
import figures  # noqa: E402
import notebooks  # noqa: E402

FOLDER = "_drawings"
NARROW = 400  # points: what any screen shows whole


class Drawing(SphinxDirective):
    """``drawing:: name``, with a caption as content; its docstring is for readers who do not see it."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in drawings.DRAWINGS:
            raise self.error(f"no drawing is called {name}")
        words = inspect.getdoc(drawings.DRAWINGS[name])
        files = sorted((DOCS / FOLDER).glob(f"{name}-[0-9]-*.svg"))
        several = ["panel"] if len(files) > 2 else ["narrow"] if width(files[0]) < NARROW else []
        shown = nodes.figure(classes=["drawing"])
        for file in files:
            kind, first = file.stem.rpartition("-")[2], file.stem.startswith(f"{name}-0")
            classes = [f"only-{kind}", *several]
            shown += nodes.image(uri=f"/{FOLDER}/{file.name}", alt=words if first else "", classes=classes)
        if self.content:
            caption = nodes.caption()
            text, messages = self.state.inline_text("\n".join(self.content), self.lineno)
            caption += text
            shown += caption
            return [shown, *messages]
        return [shown]


class Code(LiteralInclude):
    """``literalinclude`` under the name of its file.

    It begins at the left margin, whatever the preprocessor's lines, which always do, hide.
    """

    def run(self) -> list[nodes.Node]:
        file = Path(self.env.relfn2path(self.arguments[0])[1]).resolve()
        self.options.setdefault("caption", f"`{file.relative_to(DOCS.parent)}`")
        shown = super().run()
        for block in (found for node in shown for found in node.findall(nodes.literal_block)):
            block.rawsource = flush_left(block.rawsource)
            block.children = [nodes.Text(block.rawsource)]
        return shown


def flush_left(code: str) -> str:
    """Without the indentation that all lines have, and without braces at the end that close what is not shown.

    A ``#pragma`` gets the indentation of the line behind it.
    """
    lines = code.rstrip().splitlines()
    while lines and lines[-1].strip() in ("}", "};", "") and "\n".join(lines).count("}") > "\n".join(lines).count("{"):
        lines.pop()
    for number in range(len(lines) - 2, -1, -1):
        if lines[number].startswith("#pragma"):
            lines[number] = re.match(" *", lines[number + 1])[0] + lines[number]
    return textwrap.dedent("\n".join(lines)).strip("\n") + "\n"


def width(file: Path) -> float:
    """Of an SVG, in points."""
    return float(re.search(r'width="([\d.]+)pt"', file.read_text())[1])


def draw(app: Sphinx) -> None:
    """Once a build, into the source folder, where Sphinx finds images; git ignores them."""
    shutil.rmtree(DOCS / FOLDER, ignore_errors=True)  # a drawing may have had more panels
    drawings.render(DOCS / FOLDER)


def expand(app: Sphinx, name: str, source: list[str]) -> None:
    text = figures.expand(source[0])
    if "course" in app.tags:
        text = re.sub(r"\[([^\]]+)\]\(\.\./[^)\s]+\)", r"\1", text)
        text = re.sub(r"<a href=[^>]*>(.*?)</a>", r"\1", text, flags=re.DOTALL)
    source[0] = text


def link_pages(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """`docs/PAGE.md` and README.md's like, written as code, lead to the pages that they name."""
    for literal in list(doctree.findall(nodes.literal)):
        target = re.fullmatch(r"(?:docs/)?([\w/]+)\.md", literal.astext())
        if not target or isinstance(literal.parent, nodes.reference):
            continue
        page = {"CHANGELOG": "changelog"}.get(target[1], target[1])
        if page in app.env.found_docs and page != name:
            literal.parent.replace(literal, make_refnode(app.builder, name, page, "", literal.deepcopy()))


def forget_binaries(app: Sphinx, env: BuildEnvironment) -> None:
    """viewcode lists modules that have no source, the extension, among those that it shows."""
    modules = getattr(env, "_viewcode_modules", {})
    for name in [name for name, found in modules.items() if not found]:
        del modules[name]


def pack_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Beside the pages of the course."""
    if exception is None and app.builder.name == "html":
        with zipfile.ZipFile(Path(app.outdir) / "course" / "notebooks.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            for name, text in notebooks.notebooks(DOCS / "course").items():
                packed.writestr(name, text)


def setup(app: Sphinx) -> dict[str, Any]:
    # Attributes as their class describes them, not by the docstrings of properties: in extensions these are signatures.
    process = SphinxDocString._process_param
    SphinxDocString._process_param = lambda self, name, text, _: process(self, name, text, False)
    app.add_directive("drawing", Drawing)
    app.add_directive("literalinclude", Code, override=True)
    app.connect("builder-inited", draw)
    app.connect("source-read", expand)
    app.connect("doctree-resolved", link_pages)
    app.connect("env-updated", forget_binaries)
    app.connect("build-finished", pack_notebooks)
    return {"parallel_read_safe": True, "version": "1"}
