"""The text of every file: functions and lines of a size that one can read, and no leftovers."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from support.source_tree import ROOT, ROW_KINDS, SOURCES, label, needs_source_tree, tracked

pytestmark = needs_source_tree


LONGEST_FUNCTION = 60
LONGER_FUNCTIONS = {
    "multiply_tile": "the micro-kernel of the CPU: one register tile, whose loops and stores share all its constants",
    "direct_tile": "the same without packing",
    "sum_and_store": "two cases of one epilogue, which share its constants and the places of its sums",
    "tall_skinny_columns_kernel": "one loop over k with its prologue and its end, which share all registers",
}


def cpp_functions(path: Path):
    """(first line, lines of the body, its head) of functions and methods, as clang-format lays them out."""
    lines = path.read_text().splitlines()
    head = re.compile(r" *(?!namespace|struct|class|enum|union|if |for |while |switch |else|do |try|\}).*[\w)>] \{$")
    for last, line in enumerate(lines):
        if not head.match(line):
            continue
        first = last  # of a head of several lines, of which all but the first stand farther in
        while first and re.match(r" {3,}\S", lines[first]) and not re.match(r"$|#|.*[{};]$", lines[first - 1]):
            first -= 1
        margin = re.match(" *", lines[first])[0]
        if len(margin) <= 2 and not re.match(r" *(for|if|while|switch) ", lines[first]):
            end = next((i for i in range(last + 1, len(lines)) if lines[i].startswith(margin + "}")), last)
            yield first + 1, end - last - 1, " ".join(text.strip() for text in lines[first : last + 1])


def python_functions(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            documented = len((ast.get_docstring(node, clean=False) or "").splitlines())
            yield node.lineno, (node.end_lineno or node.lineno) - node.lineno - documented, node.name


def test_functions_stay_small():
    long = []
    for path in tracked():
        functions = {".py": python_functions}.get(
            path.suffix, cpp_functions if path.suffix in (".h", ".hpp", ".cpp", ".cu", ".cuh") else lambda _: ()
        )
        for line, length, head in functions(path):
            if length > LONGEST_FUNCTION and not any(name in head for name in LONGER_FUNCTIONS):
                long.append(f"{label(path)}:{line}: {length} lines: {head.strip()}")
    assert not long, "\n".join(long)


def places(wrong: Callable[[str], object], paths: Iterable[Path]) -> str:
    """The lines of files that are wrong, a line each."""
    return "\n".join(
        f"{label(path)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if wrong(line)
    )


def test_lines_stay_short():
    """120 columns, but for rows of tables: those of Markdown, of kernels.def and of measured.def."""
    row = re.compile(rf"\s*\||({ROW_KINDS})?(SGEMM|SGEMV|TRANSPOSE)\(|(COMMON_)?COST\(")
    tables = {path for path in tracked() if path.suffix in (".md", ".def")}
    others = {path for path in tracked() if path.name != "LICENSE"} - tables
    long = places(lambda line: len(line) > 120, others) + places(lambda s: len(s) > 120 and not row.match(s), tables)
    assert not long, long


# Names that the field has other words for (docs/glossary.md), and that were taken out of code and docs.
PRIVATE_WORDS = re.compile(
    r"\bsimt_\w|\bsliced_|\bSlices::|GivenBack|BoxWriter|QuadWriter|WayOut|KeptSplit|StepSplits|KeptRun|kept_run"
    r"|ShortCalls|RecentPlans|alike\.h|VERDICT|\b[Vv]erdict|\bTEAMS\b|\bSQUARES\b|\bSHARES\b|band_order|corner_of"
    r"|[Ss]tands? by\b|stand-in|sum_splits|CutPlan|longest_chain|grid_release|launch_overlapping|kept_share"
    r"|KeptApart|FirstWords|to_meet|say_read|is_for_others|MixedTile|InterleavedTile|SliceTile|turn_to_stage"
)


def test_the_fields_words():
    """In the sources and the docs; the changelog says what was renamed, and result files keep the names they had."""
    parts = ("cpp", "cuda", "docs", "README.md", "ARCHITECTURE.md")
    found = places(PRIVATE_WORDS.search, (path for path in tracked() if path.relative_to(ROOT).parts[0] in parts))
    assert not found, found


def test_no_leftovers():
    """No disabled code, no notes to do something later, no paths of a machine, no advice that cannot be followed."""
    roots = "|".join(("wo" + "rk", "ro" + "ot", "t" + "mp", "ho" + "me"))
    paths = re.compile(rf"(?<![\w.$}}/-])/({roots})/[\w.-]")
    notes = re.compile("|".join((r"#\s*if " + r"0\b", r"\bTO" + r"DO\b", r"\bFIX" + r"ME\b", r"\bX" + r"XX\b")))
    registry = re.compile("|".join((r"py" + r"pi\.org", r"python" + r"hosted")))
    published = re.compile(r"pip install '?fast" + r"linalg\b")  # which nothing is yet
    merge = re.compile(r"^(<{7}|>{7})( |$)")
    wrong = (paths, notes, registry, published, merge)
    found = places(lambda line: any(each.search(line) for each in wrong), tracked())
    assert not found, found


def test_messages_below_the_bindings_speak_no_python():
    """They reach C and C++ callers too: the interfaces add what is of theirs (core/errors.h)."""
    python = re.compile(r'"[^"]*(\b(fl|fastlinalg)\.\w|\bNone\b|=(True|False)\b)[^"]*"')
    below = [path for path in SOURCES if not label(path).startswith("cpp/bindings/")]
    found = places(lambda line: python.search(line) and not re.match(r"\s*(#\s*include|//)", line), below)
    assert not found, found


def test_extras_are_used():
    """By an import or a command somewhere; a package may have another name as a module."""
    section = re.search(r"optional-dependencies\]\n(.*?)\n\[", (ROOT / "pyproject.toml").read_text(), re.DOTALL)[1]
    modules = {"cuda-bindings": r"cuda\.core", "cuda-core": r"cuda\.core", "pillow": "PIL"}
    modules |= {"scikit-learn": "sklearn", "asv": "asv_bench", "myst-parser": "myst_parser"}
    modules |= {"sphinx-copybutton": "sphinx_copybutton", "ml-dtypes": "ml_dtypes"}
    left_out = (Path(__file__), ROOT / "pyproject.toml", ROOT / "CHANGELOG.md")
    text = "\n".join(path.read_text(errors="replace") for path in tracked() if path not in left_out)
    names = re.findall(r'^\s*(?:\w+ = \[)?"([\w-]+)|, "([\w-]+)', section, re.MULTILINE)
    unused = [name for name in map("".join, names) if not re.search(rf"\b{modules.get(name, name)}\b", text)]
    assert len(names) > 20 and not unused
