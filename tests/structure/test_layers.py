"""Who may include what: layers of folders, and what each layer has no business with."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from support.source_tree import KERNEL_FILES, ROOT, SOURCES, TESTS, code, label, needs_source_tree

pytestmark = needs_source_tree

# A folder is a layer. Files include headers of their own folder and of those before it in this list.
LAYERS = (
    "cpp/core",
    "cpp/runtime",
    "cpp/plan",
    "cpp/plan/strict",
    "cpp/plan/accurate",
    "cpp/cost",
    "cpp/table",
    "cpp/transfer",
    "cpp/device",
    "cuda/runtime",
    "cuda/launch",
    "cuda/pipeline",
    "cpp/dispatch",
    "cpp/run",
    "cpp/capi",
    "cpp/bindings/arrays",
    "cpp/bindings/calls",
    "cpp/bindings/sharded",
    "cpp/bindings/grouped",
    "cpp/bindings/operators",
    "cpp/bindings/testing",
    "cpp/bindings",
    "cpp/cblas",
)
# Kernels stand beside that list: each family sees what they have in common, and the first five layers.
SEEN_BY_KERNELS = ("cpp/core", "cpp/runtime", "cpp/plan", "cpp/plan/accurate", "cpp/plan/strict")
# Kernels made of another family's, and the rooms of a family.
ACCURATE = "cuda/kernels/sgemm_accurate"
BUILT_ON = {
    "cuda/kernels/sgemm_reproducible": ("cuda/kernels/sgemm_strict",),
    "cuda/kernels/ladder/async": ("cuda/kernels/sgemm_strict",),
    f"{ACCURATE}/split": (ACCURATE,),
    f"{ACCURATE}/fallback": (ACCURATE,),
    f"{ACCURATE}/wgmma": (ACCURATE, f"{ACCURATE}/fallback", f"{ACCURATE}/split"),
    f"{ACCURATE}/mma": (ACCURATE, f"{ACCURATE}/fallback"),
}
MOST_FILES_OF_A_FOLDER = 25


def layer(path: Path) -> str:
    """The folder; CPU kernels are one layer, whatever instruction set a folder of theirs is for."""
    folder = path.parent.relative_to(ROOT).as_posix()
    return next((top for top in ("cpp/kernels", "cpp/include") if folder.startswith(top)), folder)


def is_kernel(folder: str) -> bool:
    return folder.startswith(("cpp/kernels", "cuda/kernels"))


def may_include(folder: str, other: str) -> bool:
    if folder == other or other in BUILT_ON.get(folder, ()):
        return True
    if is_kernel(folder):
        return other in SEEN_BY_KERNELS or (other == "cuda/kernels/common" and folder.startswith("cuda/"))
    if other == "cpp/include":
        return folder in ("cpp/run", "cpp/capi", "cpp/cblas")
    return not is_kernel(other) and LAYERS.index(other) < LAYERS.index(folder)


def includes(path: Path):
    """The project's own headers that a file includes."""
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
        candidates = [path.parent / name, *(ROOT / folder / name for folder in ("cpp", "cpp/include", "."))]
        found = [c.resolve() for c in candidates if c.exists()]
        assert found, f"{path.relative_to(ROOT)} includes {name}, which is nowhere"
        yield found[0]


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_includes_point_one_way(path):
    own = layer(path)
    for header in includes(path):
        assert may_include(own, layer(header)), f"{label(path)} includes {label(header)}"


def test_folders_are_rooms():
    """No folder has so many files that one no longer sees what is in it."""
    counts = Counter(path.parent for path in (*SOURCES, *TESTS.rglob("*.py")))
    crowded = {label(folder): count for folder, count in counts.items() if count > MOST_FILES_OF_A_FOLDER}
    assert not crowded, crowded


def test_tests_lie_in_folders():
    """A test lies with those of the same feature; what several have in common is in tests/support."""
    assert [path.name for path in TESTS.glob("*.py")] == ["conftest.py"]
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert not [name for name, count in names.items() if count > 1], "a file is found by its name alone"


def test_no_include_cycles():
    TopologicalSorter({path.resolve(): list(includes(path)) for path in SOURCES}).prepare()


CIRCLES = "cpp/bindings/arrays"  # an array knows its library, which knows the library's own arrays


def test_files_of_a_folder_point_one_way():
    """A header and its source are one unit: two units that need each other are one thing in two places."""
    units: dict[Path, set[Path]] = {}
    for path in SOURCES:
        if layer(path) != CIRCLES:
            unit = path.resolve().with_suffix("")
            needs = {header.with_suffix("") for header in includes(path)} - {unit}
            units.setdefault(unit, set()).update(needs)
    TopologicalSorter(units).prepare()


def test_equality_is_the_compilers_own():
    """What is remembered of a call is found again by a key: one that overlooks a field would answer other calls too."""
    for path in SOURCES:
        for line in code(path).splitlines():
            if re.search(r"operator==\s*\(const \w", line):
                assert line.rstrip().endswith("const = default;"), f"{label(path)}: {line.strip()}"


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


VARIABLES = re.compile(r'"((?:FASTLINALG|OMP|XDG|CUDA)_[A-Z_]+|HOME)"')


def test_nothing_is_loaded_or_run():
    """SECURITY.md: no code by name, no program; and the environment variables that are read have a line in the docs."""
    calls = re.compile(r"\b(dlopen|dlmopen|dlsym|system|popen|exec[lv]p?e?|posix_spawnp?|fork)\s*\(")
    read: set[str] = set()
    for path in SOURCES:
        assert not calls.search(code(path)), label(path)
        if re.search(r"\bgetenv\(", path.read_text()):
            read |= set(VARIABLES.findall(path.read_text()))
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    assert len(read) >= 9 and not [name for name in read if f"`{name}`" not in page]
    runs = re.compile(r"\b(eval|exec|__import__|import_module|compile)\(|\b(pickle|subprocess|runpy|marshal)\b")
    for path in (ROOT / "python" / "fastlinalg").rglob("*.py"):
        if not {"cli", "bench"} & set(path.parts):  # which commands and measurements are for
            text = re.sub(r'""".*?"""|#[^\n]*|re\.compile', "", path.read_text(), flags=re.DOTALL)
            assert not runs.search(text), label(path)


# ---------------------------------------------------------------- Python
def test_the_package_is_free_of_ctypes():
    """But for threadpoolctl's controller, whose interface is ctypes."""
    found = {
        path.name
        for path in (ROOT / "python").rglob("*.py")
        if re.search(r"\bimport ctypes|\.ctypes\b", path.read_text())
    }
    assert found == {"threadpoolctl.py"}


ALWAYS_THERE = {"fastlinalg", "hypothesis", "numpy", "pytest", "support", *sys.stdlib_module_names}
ALWAYS_THERE |= {path.stem for path in (ROOT / "asv_bench").glob("*")}
OPTIONAL = ("fastlinalg.dask", "fastlinalg.threadpoolctl", "fastlinalg.torch")
SKIPS = re.compile(r"\bimportorskip\(|^from support\.(dask_arrays|pytorch\b)|^try:")


def needed(path: Path) -> set[str]:
    """What importing a file imports, up to where it skips."""
    names, text = set(), path.read_text()
    lines = text.splitlines()
    for statement in ast.parse(text).body:
        if SKIPS.search("\n".join(lines[statement.lineno - 1 : statement.end_lineno])):
            break
        if isinstance(statement, ast.Import):
            names |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            names |= {f"{statement.module}.{alias.name}" for alias in statement.names}
    return names


def test_no_test_needs_an_optional_library_to_be_collected():
    """Without Dask, PyTorch and others it skips: by `support/`, importorskip, or an import within the test."""
    files = [
        path for path in TESTS.rglob("*.py") if path.name.startswith(("test_", "conftest")) or "support" in path.parts
    ]
    found = {
        label(path): name
        for path in files
        for name in needed(path)
        if name.split(".")[0] not in ALWAYS_THERE or name.startswith(OPTIONAL)
    }
    assert len(files) > 100 and not found


@pytest.mark.parametrize(
    ("part", "package", "advice"),
    [("dask", "distributed", "'dask.array.' distributed"), ("torch", "torch", "'torch>=2.10'")],
)
def test_a_part_whose_library_is_missing_says_so(part, package, advice, monkeypatch):
    for name in [name for name in sys.modules if name.startswith(f"fastlinalg.{part}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(
        ModuleNotFoundError, match=rf"fastlinalg\.{part} needs .* or newer .*({package}|{part}).*: pip install {advice}"
    ):
        importlib.import_module(f"fastlinalg.{part}")
