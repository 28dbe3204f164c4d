"""The rules of ARCHITECTURE.md that a machine can check: layers, one table of kernels, sizes, leftovers."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import fastlinalg as fl
from rows import OPERATIONS

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(not (ROOT / "cpp" / "table" / "kernels.def").exists(), reason="needs the source tree")

SOURCES = sorted(
    p
    for folder in ("cpp", "cuda")
    for p in (ROOT / folder).rglob("*")
    if p.suffix in (".h", ".hpp", ".cpp", ".cu", ".cuh")
)
KERNEL_FILES = [p for p in SOURCES if "kernels" in p.parts]
KERNEL_SOURCES = [p for p in KERNEL_FILES if p.suffix in (".cpp", ".cu")]

# ---------------------------------------------------------------- layers
# A folder is a layer. Files include headers of their own folder and of those before it in this list.
LAYERS = (
    "cpp/core",
    "cpp/runtime",
    "cpp/plan",
    "cpp/cost",
    "cpp/table",
    "cpp/transfer",
    "cpp/device",
    "cuda/runtime",
    "cuda/launch",
    "cuda/pipeline",
    "cpp/dispatch",
    "cpp/run",
    "cpp/bindings/arrays",
    "cpp/bindings/calls",
    "cpp/bindings",
)
# Kernels stand beside that list: each family sees what they have in common, and the first three layers.
SEEN_BY_KERNELS = ("cpp/core", "cpp/runtime", "cpp/plan")
MOST_FILES_OF_A_FOLDER = 25


def layer(path: Path) -> str:
    """The folder; CPU kernels are one layer, whatever instruction set a folder of theirs is for."""
    folder = path.parent.relative_to(ROOT).as_posix()
    return next((top for top in ("cpp/kernels", "cpp/include") if folder.startswith(top)), folder)


def is_kernel(folder: str) -> bool:
    return folder.startswith(("cpp/kernels", "cuda/kernels"))


# Traits are to say which kernels split operands.
EXCEPTIONS = {("cpp/cost", "cpp/table")}


def may_include(folder: str, other: str) -> bool:
    if folder == other or (folder, other) in EXCEPTIONS:
        return True
    if is_kernel(folder):
        return other in SEEN_BY_KERNELS or (other == "cuda/kernels/common" and folder.startswith("cuda/"))
    if other == "cpp/include":
        return folder == "cpp/run"
    return not is_kernel(other) and LAYERS.index(other) < LAYERS.index(folder)


def includes(path: Path):
    """The project's own headers that a file includes."""
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
        candidates = [path.parent / name, *(ROOT / folder / name for folder in ("cpp", "cpp/include", "."))]
        found = [c.resolve() for c in candidates if c.exists()]
        assert found, f"{path.relative_to(ROOT)} includes {name}, which is nowhere"
        yield found[0]


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_includes_point_one_way(path):
    own = layer(path)
    for header in includes(path):
        assert may_include(own, layer(header)), f"{label(path)} includes {label(header)}"


def test_folders_are_rooms():
    """No folder has so many files that one no longer sees what is in it."""
    counts = Counter(path.parent for path in SOURCES)
    crowded = {label(folder): count for folder, count in counts.items() if count > MOST_FILES_OF_A_FOLDER}
    assert not crowded, crowded


def test_no_include_cycles():
    graph = {path.resolve(): list(includes(path)) for path in SOURCES}
    done: set[Path] = set()

    def visit(path: Path, trail: tuple[Path, ...]) -> None:
        assert path not in trail, " -> ".join(label(p) for p in (*trail, path))
        if path not in done:
            for header in graph.get(path, []):
                visit(header, (*trail, path))
            done.add(path)

    for path in graph:
        visit(path, ())


def code(path: Path) -> str:
    """The text without comments and strings."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', re.sub(r"//[^\n]*", "", text))


@pytest.mark.parametrize("path", KERNEL_FILES, ids=label)
def test_kernels_do_not_allocate_throw_or_look_around(path):
    header = re.search(r'#\s*include\s+"(core/errors|runtime/threading)\.h"', path.read_text())
    assert not header, f"{label(path)} includes {header and header[1]}.h"
    word = re.search(
        r"\b(throw|try|catch|new|malloc|calloc|aligned_alloc|getenv|secure_getenv|cudaMalloc\w*|cudaSetDevice"
        r"|std::vector|std::string|Py_\w+|PyObject|numpy)\b",
        code(path),
    )
    assert not word, f"{label(path)}: kernels have no business with '{word and word[0]}'"


def test_only_the_bindings_know_python():
    for path in SOURCES:
        if "bindings" not in path.parts and not path.name.startswith("bindings"):
            assert not re.search(r"nanobind|Python\.h|PyObject", code(path)), label(path)


def test_public_headers_need_no_cuda_and_no_other_headers():
    for path in (ROOT / "cpp" / "include").rglob("*.h*"):
        for name in re.findall(r'#\s*include\s+[<"]([^>"]+)[>"]', path.read_text()):
            assert name.startswith("fastlinalg/") or "." not in name or name in ("stddef.h", "stdint.h"), (
                f"{label(path)}: {name}"
            )


# ---------------------------------------------------------------- one table
ROW = re.compile(r"^(CUDA_|STRICT_)?(SGEMM|SGEMV|TRANSPOSE)\(\s*(\w+)\s*,\s*(\w+)\s*,", re.MULTILINE)
DEFINITION = re.compile(
    r"^void (sgemm|sgemv|transpose)_(\w+)\(const \w+& ?\w*, const Context& ?\w*\)\s*\{", re.MULTILINE
)


def table():
    """(operation, name) -> (device, needs), in the order of kernels.def."""
    rows = ROW.findall((ROOT / "cpp" / "table" / "kernels.def").read_text())
    listed = {(op.lower(), name): ("cuda" if cuda else "cpu", needs) for cuda, op, name, needs in rows}
    assert len(listed) == len(rows), "a row is listed twice"
    return listed


def test_kernels_lists_the_table():
    shown = {(op, row.name): (row.device, row.needs) for op in OPERATIONS for row in fl.kernels(op)}
    for key, value in shown.items():
        assert table().get(key) == value, f"{key}: kernels() says {value}, kernels.def says {table().get(key)}"
    missing = {key: value for key, value in table().items() if key not in shown}
    # Rows for the instruction sets of another processor are left out of a build.
    assert all(needs in ("avx2_fma", "avx512f") for _, needs in missing.values()), missing


def test_rows_are_complete():
    for op in OPERATIONS:
        rows = fl.kernels(op)
        assert rows[-1].name == "reference" or any(row.name == "reference" for row in rows)
        for row in rows:
            assert row.op == op and str(row) == row.name and re.fullmatch(r"[a-z][a-z0-9_]*", row.name)
            assert row.blurb and "\n" not in row.blurb and len(row.blurb) < 160
            assert row.available == (not row.reason)
            assert (row.device == "cpu") == (row.needs in ("baseline", "avx2_fma", "avx512f"))
            with pytest.raises(AttributeError):
                row.name = "other"
        assert all(row.available for row in rows if row.needs == "baseline")


def test_every_kernel_file_has_its_rows_and_every_row_its_function():
    defined = {}
    for path in KERNEL_SOURCES:
        found = [(op, name) for op, name in DEFINITION.findall(path.read_text())]
        assert found or path.name == "peak.cpp", f"{label(path)} defines no kernel of the table"
        for key in found:
            assert key not in defined, f"{key} is defined in {label(path)} and in {defined[key]}"
            defined[key] = label(path)
    assert set(defined) - set(table()) == set(), "functions without a row"
    assert set(table()) - set(defined) == set(), "rows without a function"


def test_docs_table_is_in_step():
    tool = ROOT / "tools" / "gen_kernel_table.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------- objects
def isa_sources():
    """Each file that is compiled for an instruction set, with the flags that CMakeLists.txt gives its folder."""
    text = (ROOT / "CMakeLists.txt").read_text() if SOURCES else ""
    folders = re.findall(r'set_source_files_properties\(\$\{fl_(\w+)\} PROPERTIES COMPILE_OPTIONS "([^"]+)"\)', text)
    return [
        pytest.param(path, flags.split(";"), id=label(path))
        for folder, flags in folders
        for path in sorted((ROOT / "cpp" / "kernels" / folder).glob("*.cpp"))
    ]


@pytest.mark.parametrize("path, flags", isa_sources())
def test_isa_objects_define_no_shared_inline_functions(path, flags, tmp_path):
    """An inline function is one weak symbol with its copy for the baseline: the linker may keep the one from here."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if not compiler or not shutil.which("nm"):
        pytest.skip("needs a C++ compiler and nm")
    target = tmp_path / "object.o"
    command = [
        compiler,
        "-std=c++20",
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        *flags,
        f"-I{ROOT / 'cpp'}",
        "-c",
        str(path),
    ]
    built = subprocess.run([*command, "-o", str(target)], capture_output=True, text=True, check=False)
    if built.returncode and re.search(r"unrecogni[sz]ed|unknown.*option|unsupported option", built.stderr):
        pytest.skip("this compiler has no such instruction set")
    assert built.returncode == 0, built.stderr
    symbols = subprocess.run(
        ["nm", "-C", "--defined-only", str(target)], capture_output=True, text=True, check=True
    ).stdout
    weak = [line for line in symbols.splitlines() if re.match(r"[0-9a-f]* *[WVu] ", line)]
    assert not weak, "\n".join(weak)


# ---------------------------------------------------------------- text
def tracked():
    try:
        listing = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs git and a work tree")
    names = listing.stdout.splitlines()
    environments = {name.split("/")[0] for name in names if name.endswith("/pyvenv.cfg")}  # somebody's, under any name
    for name in names:
        path = ROOT / name
        if (
            name.split("/")[0] not in environments
            and path.is_file()
            and path.suffix not in (".png", ".npz", ".jpg", ".svg", ".json", ".csv")
        ):
            yield path


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


def test_lines_stay_short():
    """120 columns, but for rows of tables: those of Markdown and of kernels.def."""
    row = re.compile(r"\s*\||(CUDA_|STRICT_)?(SGEMM|SGEMV|TRANSPOSE)\(")
    long = [
        f"{label(path)}:{number}: {len(line)} columns"
        for path in tracked()
        if path.name != "LICENSE"
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if len(line) > 120 and not (path.suffix in (".md", ".def") and row.match(line))
    ]
    assert not long, "\n".join(long)


def test_no_leftovers():
    """No disabled code, no notes to do something later, no paths of the machine where a file was written."""
    roots = "|".join(("wo" + "rk", "ro" + "ot", "t" + "mp", "ho" + "me"))
    paths = re.compile(rf"(?<![\w.$}}/-])/({roots})/[\w.-]")
    notes = re.compile("|".join((r"#\s*if " + r"0\b", r"\bTO" + r"DO\b", r"\bFIX" + r"ME\b", r"\bX" + r"XX\b")))
    registry = re.compile("|".join((r"py" + r"pi\.org", r"python" + r"hosted")))
    found = []
    for path in tracked():
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if paths.search(line) or notes.search(line) or registry.search(line):
                found.append(f"{label(path)}:{number}: {line.strip()}")
    assert not found, "\n".join(found)


def test_extras_are_used():
    """By an import or a command somewhere; a package may have another name as a module."""
    section = re.search(r"optional-dependencies\]\n(.*?)\n\[", (ROOT / "pyproject.toml").read_text(), re.DOTALL)[1]
    modules = {"cuda-bindings": r"cuda\.core", "cuda-core": r"cuda\.core", "nvidia-ml-py": "pynvml", "pillow": "PIL"}
    modules |= {"scikit-learn": "sklearn", "asv": "asv_bench"}
    left_out = (Path(__file__), ROOT / "pyproject.toml", ROOT / "CHANGELOG.md")
    text = "\n".join(path.read_text(errors="replace") for path in tracked() if path not in left_out)
    names = re.findall(r'^\s*(?:\w+ = \[)?"([\w-]+)|, "([\w-]+)', section, re.MULTILINE)
    unused = [name for name in map("".join, names) if not re.search(rf"\b{modules.get(name, name)}\b", text)]
    assert len(names) > 20 and not unused
