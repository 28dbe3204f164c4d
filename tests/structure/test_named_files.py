"""Every file that a page, a comment or a tool names is there, under the name that it has now."""

from __future__ import annotations

import fnmatch
import re
import subprocess
from pathlib import Path

import pytest

from support.source_tree import ROOT, SOURCES, TESTS, label, needs_source_tree, tracked

pytestmark = needs_source_tree

NOTES = ROOT / "docs" / "notes"  # which tell of their day
ROOTS = ("asv_bench", "benchmarks", "cmake", "cpp", "cuda", "docs", "examples", "python", "tests", "tools")
SUFFIXES = "cpp|cuh|cu|h|hpp|py|pyi|md|json|csv|txt|png|def|cmake|pat"
START = r"(?<![\w/.:<>*{}$-])(?:\.\./)*"  # not within another path or an address, nor behind "COMMIT:"
# In any text paths from a folder of the root on, and tests; in prose each file by its name alone too.
PATH = re.compile(rf"{START}((?:{'|'.join(ROOTS)})/[\w./*?-]*[\w*](?<!_)(?![\w<{{])|(?:\w+/)*test_\w+\.py\b)")
NAME = re.compile(rf"{START}((?:[\w.*-]+/)*[\w*][\w.*-]*\.(?:{SUFFIXES}))\b(?![\w(])")
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL), re.compile(r'#[^\n]*|""".*?"""', re.DOTALL)
# What a command is told to write, and headers, which the compiler looks for.
OTHERS = re.compile(r"(?:--\w+|-o|record|draw) \S+\.(?:json|csv|png)|#include .*")
ABSENT = {
    "FILE.json": "any file",
    "asv_bench/env": "made by asv",
    "asv_bench/html": "made by tools/dashboard",
    "cuda_runtime_api.h": "of CUDA",
    "docs/PAGE.md": "any page",
    "docs/_drawings": "made by tools/docs",
    "docs/reference/api": "made by tools/docs",
    "examples/embed_c/consumer": "made by make",
    "program.cpp": "made by the reader of docs/reference/c.md",
    "python/fastlinalg/_core.pyi": "made by an editable install",
    "tuning.txt": "made by fastlinalg tune",
}


def prose(path: Path, text: str) -> str:
    """Pages whole; of code and scripts the comments, with the lines of all else left empty."""
    if path.suffix in (".md", ".def"):
        return text
    comments = COMMENTS[path.suffix not in (".h", ".hpp", ".c", ".cpp", ".cu", ".cuh")]
    kept, end = [], 0
    for comment in comments.finditer(text):
        kept += ["\n" * text.count("\n", end, comment.start()), comment[0]]
        end = comment.end()
    return "".join(kept)


def named(path: Path, text: str):
    """(line, name) of all files that a text names."""
    for pattern, searched in (PATH, text), (NAME, prose(path, text)):
        for number, line in enumerate(searched.splitlines(), 1):
            for match in pattern.finditer(OTHERS.sub("", line)):
                yield number, match[1]


def names_of(files: set[str]) -> tuple[set[str], set[str]]:
    """Files and folders from the root on, and by the ends of their paths: run/run.cpp, run.cpp."""
    places = {place.as_posix() for file in files for place in (Path(file), *Path(file).parents)}
    parts = [place.split("/") for place in places]
    return places, {"/".join(part[first:]) for part in parts for first in range(len(part))}


def lost(path: Path, text: str, places: set[str], ends: set[str]) -> list[str]:
    found = []
    for number, name in sorted(set(named(path, text))):
        known = places if name.split("/")[0] in ROOTS else ends
        there = fnmatch.filter(known, name) if set("*?") & set(name) else name in known
        if not there and name not in ABSENT:
            found.append(f"{label(path)}:{number} names {name}, which is not there")
    return found


def test_files_that_are_named_exist():
    places, ends = names_of({label(path) for path in tracked(data=True)})
    texts = [path for path in tracked() if path.suffix != ".txt" and path != Path(__file__) and path.parent != NOTES]
    found = [line for path in texts for line in lost(path, path.read_text(errors="replace"), places, ends)]
    assert not found, "\n".join(found)


def test_tests_that_are_named_exist():
    """file.py::test_name, as pytest takes it, in pages."""
    named = [
        (label(page), file, test)
        for page in tracked()
        if page.suffix == ".md"
        for file, test in re.findall(r"\b([\w/]+\.py)::(\w+)", page.read_text())
    ]
    gone = [
        f"{page} names {file}::{test}"
        for page, file, test in named
        if not (TESTS / file).exists() or f"def {test}(" not in (TESTS / file).read_text()
    ]
    assert len(named) > 70 and not gone, "\n".join(gone)


def test_a_name_that_is_stale_is_found():
    places, ends = names_of({"cpp/run/run.cpp", "tests/api/test_log.py"})
    code = 'const char* name = "gone.h";  // as run.cpp, run/run.cpp, cpp/run/run.cpp and gone.cuh have it\n'
    found = lost(ROOT / "cpp/a.h", "\n" + code + "// cpp/run.cpp, api/run.cpp, test_log.py, cpp/*/gone.h", places, ends)
    wrong = [(2, "gone.cuh"), (3, "api/run.cpp"), (3, "cpp/*/gone.h"), (3, "cpp/run.cpp")]
    assert found == [f"cpp/a.h:{line} names {name}, which is not there" for line, name in wrong]
    page = "`tests/log.py`, `api/test_log.py`, `tests/test_log.py` and 0123abc:cpp/gone.cpp; a --json y.json"
    found = lost(ROOT / "docs/a.md", page, places, ends)
    assert found == [f"docs/a.md:1 names {name}, which is not there" for name in ("tests/log.py", "tests/test_log.py")]


def test_files_of_the_history_are_in_it():
    """COMMIT:path, as git takes it, of what is no longer in the tree."""
    wanted: dict[str, set[str]] = {}
    for path in tracked():
        for commit, name in re.findall(r"\b([0-9a-f]{7}):([\w/.*-]+[\w*])", path.read_text(errors="replace")):
            if path != Path(__file__):
                wanted.setdefault(commit, set()).add(name)
    for commit, names in wanted.items():
        listing = subprocess.run(
            ["git", "ls-tree", "-r", "--name-only", commit], cwd=ROOT, capture_output=True, text=True
        )
        if listing.returncode:
            pytest.skip(f"this clone has not the history of {commit}")
        gone = [name for name in names if not fnmatch.filter(listing.stdout.splitlines(), name)]
        assert not gone, f"{commit} has no {', '.join(gone)}"
    assert wanted


def test_faults_are_where_the_table_says():
    """tests/README.md: what a fault is to be seeded in occurs in one of the files of its row."""
    rows = [line.split(" | ") for line in (TESTS / "README.md").read_text().splitlines() if line.startswith("| ")]
    sources = {f"/{label(path)}": path for path in SOURCES}
    checked = 0
    for fault, where, _ in (row for row in rows if len(row) == 3):
        names = tuple(f"/{name}" for name in re.findall(r"`([\w/]+\.\w+)`", where))
        text = "".join(path.read_text() for place, path in sources.items() if place.endswith(names))
        for symbol in re.findall(r"`(\w+)` (?:returns|does|asks)", fault) + re.findall(r"`(\w+)`", where):
            checked += bool(names)
            assert not names or re.search(rf"\b{symbol}\b", text), (symbol, where)
    assert checked > 5
