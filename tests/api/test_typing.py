"""The types of the package, as mypy and pyright see them: right uses pass with the types they say, wrong ones fail."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fastlinalg as fl
from fastlinalg import _api
from support.requirements import missing
from support.source_tree import TESTS

USES = TESTS / "typing"
RIGHT, WRONG = "right_uses.py", "wrong_uses.py"


def output(command: list[str], cwd) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def mypy(cwd) -> list[tuple[str, int, str]]:
    if importlib.util.find_spec("mypy") is None:
        missing("mypy", "mypy is not installed")
    options = ["--strict", "--no-error-summary", "--config-file=", "--show-absolute-path", f"--cache-dir={cwd}"]
    text = output([sys.executable, "-m", "mypy", *options, str(USES / RIGHT), str(USES / WRONG)], cwd)
    found = re.findall(r"^.*?(\w+\.py):(\d+): error: (.*)$", text, re.MULTILINE)
    return [(file, int(line), message) for file, line, message in found]


def pyright(cwd) -> list[tuple[str, int, str]]:
    command = shutil.which("pyright") or shutil.which("basedpyright")
    if command is None:
        missing("pyright", "pyright is not installed")
    (cwd / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    for name in (RIGHT, WRONG):  # files outside of its folder it would leave out
        shutil.copy(USES / name, cwd)
    found = json.loads(output([command, "--outputjson", f"--pythonpath={sys.executable}", "-p", str(cwd)], cwd))
    assert found["summary"]["filesAnalyzed"] >= 2, found
    rows = [row for row in found["generalDiagnostics"] if row["severity"] == "error"]
    return [(Path(row["file"]).name, row["range"]["start"]["line"] + 1, row["message"]) for row in rows]


def test_the_types_of_the_module_lie_beside_the_sources():
    """Where checkers look for them, in an editable install too."""
    assert Path(fl.__file__).with_name("_core.pyi").is_file()


@pytest.mark.parametrize("checker", [mypy, pyright], ids=lambda checker: checker.__name__)
def test_right_uses_pass_and_wrong_ones_fail(checker, tmp_path):
    found = checker(tmp_path)
    wrong = {
        number
        for number, line in enumerate((USES / WRONG).read_text().splitlines(), 1)
        if re.search(r"# wrong\b", line)
    }
    assert [error for error in found if error[0] != WRONG] == []
    lines = {line for file, line, _ in found if file == WRONG}
    assert lines == wrong, (sorted(lines - wrong), sorted(wrong - lines), found)


def parameters(function) -> list[tuple]:
    return [(x.name, x.kind, x.default) for x in inspect.signature(function).parameters.values() if x.name != "dtype"]


def test_stub_and_source_have_the_same_signatures():
    """Names and defaults of _api.pyi are those of _api.py, but for a dtype that has to be given."""
    stub = ast.parse(Path(_api.__file__).with_suffix(".pyi").read_text())
    typed = [node for node in stub.body if isinstance(node, ast.FunctionDef)]
    assert {node.name for node in typed} == {name for name in vars(_api) if name in fl.__all__}
    for node in typed:
        node.decorator_list, there = [], {}
        exec(f"from __future__ import annotations\n{ast.unparse(node)}", there)
        assert "dtype" in inspect.signature(there[node.name]).parameters
        assert parameters(there[node.name]) == parameters(getattr(_api, node.name)), node.name
