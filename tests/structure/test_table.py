"""One table of kernels, cpp/table/kernels.def: what is derived from it is in step with it."""

from __future__ import annotations

import re

import pytest

import fastlinalg as fl
from support.rows import OPERATIONS
from support.source_tree import KERNEL_FILES, ROOT, ROW_KINDS, label, needs_source_tree

pytestmark = needs_source_tree

# Rows of the ladder need any GPU: their second column is a tile.
ROW = re.compile(rf"^({ROW_KINDS})?(SGEMM|SGEMV|TRANSPOSE)\(\s*(\w+)\s*,\s*(\w+)\s*,", re.MULTILINE)
DEFINITION = re.compile(
    r"^void (sgemm|sgemv|transpose)_(\w+)\(const \w+& ?\w*, const Context& ?\w*\)\s*\{", re.MULTILINE
)


# Strict kernels with tiles: their functions are those of a list beside the tiles.
TILES = {
    macro: re.findall(r"DO\((\w+)\)", names)
    for header in (ROOT / "cpp" / "plan" / "strict").glob("*_tiles.h")
    for macro, names in re.findall(r"#define (FL_\w+_TILES)\(DO\)((?:.*\\\n)*.*)", header.read_text())
}
# Kernels that compute no operation, or a part of one.
WITHOUT_ROWS = (
    "peak.cpp",
    "copy_triangle.cu",
    "widen_halves.cu",
    "launch.cu",
    "tensor_map.cu",
    "split_k.cu",
    "stream_k.cu",
    "split_fp16.cu",
    "split_bf16.cu",
    "float32_fallback.cu",
    "split_k_reduction.cu",
    "single_products.cu",
    "triangle_products.cu",
)


def table():
    """(operation, name) -> (device, needs), in the order of kernels.def."""
    rows = ROW.findall((ROOT / "cpp" / "table" / "kernels.def").read_text())
    listed = {
        (op.lower(), name): ("cpu" if kind in ("", "PACKED_") else "cuda", "cuda" if kind == "LADDER_" else needs)
        for kind, op, name, needs in rows
    }
    assert len(listed) == len(rows), "a row is listed twice"
    return listed


def test_kernels_lists_the_table():
    shown = {(op, row.name): (row.device, row.needs) for op in OPERATIONS for row in fl.kernels(op)}
    for key, value in shown.items():
        assert table().get(key) == value, f"{key}: kernels() says {value}, kernels.def says {table().get(key)}"
    missing = {key: value for key, value in table().items() if key not in shown}
    # Rows for the instruction sets of another processor are left out of a build.
    assert all(needs in ("avx2_fma", "avx512f", "amx_bf16", "neon") for _, needs in missing.values()), missing


# What a device may be asked to compute: rules of cost/rules.h that together refuse nothing of it.
WIDEST = {"sgemm": {"blas_layout"}, "sgemv": {"blas_layout"}, "transpose": {"out_of_place", "contiguous_rows"}}


@pytest.mark.parametrize("op", OPERATIONS)
def test_any_gpu_has_rows_for_every_call_besides_the_ladder(op):
    """Of SGEMM's ladder dispatch takes the last step alone, and that one not for every call."""
    rules = dict(
        re.findall(rf"^CUDA_{op.upper()}\((\w+), *cuda, *(\w+),", (ROOT / "cpp/table/kernels.def").read_text(), re.M)
    )
    choices = {row.name for row in fl.kernels(op) if not row.traits.ladder and "reproducible" not in row.name}
    assert WIDEST[op] <= {rule for name, rule in rules.items() if name in choices}


def test_rows_are_complete():
    for op in OPERATIONS:
        rows = fl.kernels(op)
        assert rows[-1].name == "reference" or any(row.name == "reference" for row in rows)
        for row in rows:
            assert row.op == op and str(row) == row.name and re.fullmatch(r"[a-z][a-z0-9_]*", row.name)
            assert row.blurb and "\n" not in row.blurb and len(row.blurb) < 160
            assert row.available == (not row.reason)
            assert (row.device == "cpu") == (row.needs in ("baseline", "avx2_fma", "avx512f", "amx_bf16", "neon"))
            with pytest.raises(AttributeError):
                row.name = "other"
        assert all(row.available for row in rows if row.needs == "baseline")


def test_every_kernel_file_has_its_rows_and_every_row_its_function():
    defined = {}
    for path in KERNEL_FILES:
        if path.suffix not in (".cpp", ".cu"):
            continue
        found = DEFINITION.findall(path.read_text())
        for macro in re.findall(r"^(FL_\w+_TILES)\(FL_FUNCTION\)", path.read_text(), re.MULTILINE):
            found += [("sgemm", name) for name in TILES[macro]]
        assert found or path.name in WITHOUT_ROWS, f"{label(path)} defines no kernel of the table"
        for key in found:
            assert key not in defined, f"{key} is defined in {label(path)} and in {defined[key]}"
            defined[key] = label(path)
    assert set(defined) - set(table()) == set(), "functions without a row"
    assert set(table()) - set(defined) == set(), "rows without a function"


def test_the_page_has_every_row(monkeypatch):
    """docs/kernels.md as the site has it, with how to read the names of strict kernels."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    import figures

    text = figures.expand((ROOT / "docs" / "kernels.md").read_text())
    named = set(re.findall(r"^\| `(\w+)` \| (\w+) \|", text, re.MULTILINE))
    assert named == {(name, needs) for (_, name), (_, needs) in table().items()}
    assert "- `k<G>`: sliced-K" in text
