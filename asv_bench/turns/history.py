"""Results in asv's own format, by its own classes: one file a commit and machine, and the list of benchmarks."""

from __future__ import annotations

import itertools
import json
import math
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import asv.benchmark
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.machine import Machine
from asv.results import Results
from asv.runner import BenchmarkResult

from .builds import git
from .cases import FOLDER
from .record import Measured
from .rounds import Build, Samples

CONFIG = FOLDER / "asv.conf.json"


def config() -> Config:
    """asv.conf.json with folders that do not depend on where the command is called."""
    found = Config.load(str(CONFIG))
    for name in ("benchmark_dir", "results_dir", "html_dir", "env_dir"):
        setattr(found, name, str(FOLDER / getattr(found, name)))
    return found


def write_machine(info: Mapping[str, str], results: Path) -> None:
    file = results / info["machine"] / "machine.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**info, "version": Machine.api_version}, indent=4, sort_keys=True) + "\n")


def write_benchmarks(build: Build, results: Path) -> Benchmarks:
    """benchmarks.json, as asv itself finds them, but for their sources: those of this checkout are to be read."""
    conf = config()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        command = [build.python, asv.benchmark.__file__, "discover", conf.benchmark_dir, str(file)]
        environment = build.environment() | {"ASV_PYTHONPATH": str(build.site)}
        subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True)
        found = json.loads(file.read_text())
    for benchmark in found:
        benchmark["code"] = ""
    conf.results_dir = str(results)
    benchmarks = Benchmarks(conf, found)
    results.mkdir(parents=True, exist_ok=True)
    benchmarks.save()
    listing = results / "benchmarks.json"
    rows = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in json.loads(listing.read_text()).items())
    listing.write_text("{\n" + ",\n".join(rows) + "\n}\n")  # a line for each
    return benchmarks


def write(measured: Measured, benchmarks: Benchmarks, info: Mapping[str, str], results: Path) -> Path:
    """The result file of one commit. Cases that are measured replace old figures, and the others stay."""
    commit, python, numpy = measured.commit, measured.python, measured.numpy
    date = 1000 * int(git("show", "-s", "--format=%ct", commit))
    params = {**info, "python": python, "numpy": numpy}
    new = Results(params, {"numpy": numpy}, commit, date, python, f"py{python}-numpy{numpy}", {})
    file = results / new._filename
    if file.exists():
        new = Results.load(str(file))
    by_name: dict[str, dict[tuple[str, ...], Samples]] = {}
    for case, found in measured.samples.items():
        by_name.setdefault(case.name, {})[tuple(map(repr, case.params))] = found
    for name, rows in by_name.items():
        benchmark = benchmarks[name]
        keys = list(itertools.product(*benchmark["params"]))
        chosen = {i for i, key in enumerate(keys) if key in rows}
        result = _result([rows.get(key) for key in keys], benchmark["unit"])
        new.add_result(benchmark, result, selected_idx=chosen)
    new.save(str(results))
    return file


def _result(rows: Sequence[Samples | None], unit: str) -> BenchmarkResult:
    """Of the rounds, the least time, as other load and a slower clock only lengthen it; of ratios the median."""
    kept = statistics.median if unit == "ratio" else min
    values = [math.nan if row is None or not row.known else kept(row.known) for row in rows]
    nothing = [None] * len(values)  # no scatter: asv would weigh commits by that of a few rounds
    return BenchmarkResult(values, nothing, nothing, 0, "", None)
