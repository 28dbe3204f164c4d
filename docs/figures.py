"""Figures of the documentation: every one is read from benchmarks/results when the site is built, kernels from their
table.

A page writes `{{ name argument ... }}`, and `expand` puts what the function of that name returns in its place. The
tables of README.md, which is read without a build too, stand between `<!-- figures: NAME -->` and
`<!-- end of figures -->`; `python docs/figures.py --write` refreshes them and the pictures of README.md, and a test
sees that they are fresh.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"

LADDER = (
    "naive",
    "coalesced",
    "smem",
    "blocktile_1d",
    "blocktile_2d",
    "vectorized",
    "blocktile_8x8",
    "bank_conflict_free",
    "double_buffered",
)
COMMAND = "python docs/figures.py --write"
FUNCTIONS: dict[str, Callable[..., str]] = {}


def figure(function: Callable[..., str]) -> Callable[..., str]:
    FUNCTIONS[function.__name__] = function
    return function


def expand(text: str) -> str:
    """`text` with every `{{ name arguments }}` replaced; a name or a kernel that is not there is an error."""

    def replace(match: re.Match[str]) -> str:
        name, *arguments = match[1].split()
        return FUNCTIONS[name](*arguments)

    return re.sub(r"\{\{\s([^{}]+?)\s\}\}", replace, text)


@figure
def kernel_table() -> str:
    import kernel_table as tables

    return tables.table()


# ---------------------------------------------------------------- what the files hold


@cache
def _loaded(file: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(file.read_text())
    return loaded


def run_of(name: str) -> dict[str, Any]:
    return _loaded(RESULTS / f"{name}.json")


def results(name: str) -> dict[str, Any]:
    return run_of(f"h200-{name}")


@cache
def lines_of(name: str) -> list[dict[str, str]]:
    """Of a file with a line for each measurement; comments in it begin with #."""
    text = (RESULTS / f"{name}.csv").read_text()
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def row(file: str, kernel: str, shape: tuple[int, ...], trans: str | None = None) -> dict[str, Any]:
    """The row of one kernel and one shape: (m, n, k), or (m, n) where there is no k."""
    for found in results(file)["rows"]:
        at = found["shape"]
        sizes = (at["m"], at["n"]) if at["k"] is None else (at["m"], at["n"], at["k"])
        if found["kernel"] == kernel and sizes == shape and (trans is None or found["trans"] == trans):
            return dict(found)
    raise KeyError(f"{file}: no row of {kernel} at {shape}")


def counters(operation: str) -> dict[str, dict[str, str]]:
    return {line["kernel"]: line for line in lines_of(f"h200-counters-{operation}")}


def significant(value: float, digits: int = 3) -> str:
    """So many digits; larger whole numbers keep all of theirs, and round ones lose no zeros."""
    text = f"{value:#.{digits}g}".rstrip(".")
    if "e" in text or value >= 10**digits:
        return f"{value:.0f}"
    return f"{value:.0f}" if value == int(value) and value < 10 else text


def cube(size: str, k: str = "1024") -> tuple[int, int, int]:
    return (int(size), int(size), int(k))


def terms(file: str, kernel: str, shape: tuple[int, int, int]) -> float:
    """TFLOP/s by the median time."""
    return 2e-6 * shape[0] * shape[1] * shape[2] / float(row(file, kernel, shape)["median_us"])


# ---------------------------------------------------------------- single figures


@figure
def tflops(kernel: str, size: str, file: str = "sgemm") -> str:
    return significant(terms(file, kernel, cube(size)))


@figure
def us(kernel: str, size: str, file: str = "sgemm") -> str:
    return significant(row(file, kernel, cube(size))["median_us"])


@figure
def ms(kernel: str, size: str, file: str = "sgemm") -> str:
    return significant(row(file, kernel, cube(size))["median_us"] / 1e3)


@figure
def faster(kernel: str, than: str, size: str, file: str = "sgemm") -> str:
    """How many times as fast one kernel is as another."""
    return significant(terms(file, kernel, cube(size)) / terms(file, than, cube(size)))


@figure
def ratio(kernel: str, than: str, size: str, file: str = "sgemm") -> str:
    """The same to two places, as the tables of README.md have it."""
    return f"{terms(file, kernel, cube(size)) / terms(file, than, cube(size)):.2f}"


@figure
def large(shape: str, kernel: str, name: str) -> str:
    """A counter of the longest launch of a kernel at a large size; the end of its name is enough."""
    lines = [line for line in lines_of("h200-counters-large") if line["shape"] == shape]
    launches = [line for line in lines if line["kernel"].endswith(kernel)]
    return significant(float(max(launches, key=lambda line: int(line["time_ns"]))[name]))


@figure
def large_mhz(shape: str, kernel: str) -> str:
    return f"{float(large(shape, kernel, 'sm_clock_hz')) / 1e6:.0f}"


@figure
def of_peak(kernel: str, size: str, file: str = "sgemm") -> str:
    peak = results(file)["machine"]["peak_gflops"] / 1e3
    return significant(100 * terms(file, kernel, cube(size)) / peak, 2) + " %"


@figure
def peak(file: str = "sgemm") -> str:
    return significant(results(file)["machine"]["peak_gflops"] / 1e3)


BANDWIDTH = 4.8  # TB/s of an H200's memory


@figure
def ridge() -> str:
    """Flop a byte from which on an H200 is bound by arithmetic."""
    return significant(results("sgemm")["machine"]["peak_gflops"] / 1e3 / BANDWIDTH, 2)


@figure
def shared_tbs() -> str:
    """All multiprocessors read 128 bytes of shared memory in a cycle, and do 128 FMAs."""
    return significant(results("sgemm")["machine"]["peak_gflops"] / 2e3)


@figure
def commit(file: str) -> str:
    return str(results(file)["commit"])


@figure
def counter(operation: str, kernel: str, name: str) -> str:
    return _shown(counters(operation)[kernel], name)


def _shown(line: dict[str, str], name: str) -> str:
    """A counter, in millions from a million on.

    What the files have of waiting warps is for a hundred instructions issued; here it is how many of a scheduler's
    warps wait in a cycle.
    """
    value = float(line[name])
    if name == "registers":
        return f"{value:.0f}"
    if name.startswith("stall_"):
        return f"{value * float(line['issue_active_pct']) / 1e4:.2f}"
    return f"{value / 1e6:.1f} million" if value >= 1e6 else significant(value)


@figure
def vector_us(kernel: str, m: str, n: str, trans: str = "N") -> str:
    return significant(row("sgemv", kernel, (int(m), int(n)), trans)["median_us"])


@figure
def transpose_us(kernel: str) -> str:
    return significant(row("transpose", kernel, (2048, 512))["median_us"])


def notebook(name: str, first: str) -> list[str]:
    """The cells behind the first one of the line of a notebook's table that begins so."""
    for line in (ROOT / "docs" / f"{name}.md").read_text().splitlines():
        if line.startswith(f"| {first}"):
            return [cell.strip() for cell in line.strip("| ").split("|")][1:]
    raise KeyError(f"docs/{name}.md: no line {first}")


@figure
def notebook_cells(name: str, count: str, *first: str) -> str:
    """The first cells of such a line, to be put into a table."""
    cells = notebook(name, " ".join(first))
    return " | ".join([" ".join(first), *cells[: int(count)]])


# ---------------------------------------------------------------- tables

COUNTERS = {
    "issue_active_pct": "issue slots used, %",
    "instructions": "instructions of warps",
    "load_sector_use_pct": "bytes used of a sector loaded, %",
    "store_sector_use_pct": "bytes used of a sector stored, %",
    "shared_load_wavefronts": "wavefronts of loads from shared memory",
    "shared_load_conflicts": "of them bank conflicts",
    "registers": "registers of a thread",
    "occupancy_pct": "warps resident of those possible, %",
    "stall_long_scoreboard_pct": "warps of a scheduler that wait for global memory",
    "stall_mio_throttle_pct": "warps of a scheduler that wait to put a request to shared memory",
    "stall_short_scoreboard_pct": "warps of a scheduler that wait for shared memory",
    "stall_barrier_pct": "warps of a scheduler that wait at a barrier",
    "tflops": "TFLOP/s under the profiler",
    "l2_hit_pct": "sectors found in L2, %",
    "dram_read_bytes": "bytes read from device memory",
}


def table(head: list[str], lines: list[list[str]]) -> str:
    parts = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
    return "\n".join("| " + " | ".join(part) + " |" for part in parts)


@figure
def counter_table(operation: str, kernels: str, names: str) -> str:
    """Counters (separated by commas) of some kernels, beside each other."""
    columns = {kernel: counters(operation)[kernel] for kernel in kernels.split(",")}
    return _beside(columns, next(iter(columns.values()))["shape"], names)


def _beside(columns: dict[str, dict[str, str]], shape: str, names: str) -> str:
    head = [shape.replace("x", " × "), *(f"`{kernel}`" for kernel in columns)]
    return table(head, [[COUNTERS[n], *(_shown(line, n) for line in columns.values())] for n in names.split(",")])


@figure
def step_table(kernel: str) -> str:
    """The speed of a step beside the step before it and cuBLAS."""
    place = LADDER.index(kernel)
    columns = [*LADDER[max(place - 1, 0) : place + 1], "torch"]
    names = {"torch": "cuBLAS float32"}
    head = ["M = N, K = 1024", *(names.get(name, f"`{name}`") for name in columns)]
    lines = [[size, *(tflops(name, size) for name in columns)] for size in ("1024", "4096", "12288")]
    text = table(head, lines) + "\n\nTFLOP/s by the median time on one NVIDIA H200, whose float32 peak is "
    return text + f"{peak()}, at commit {commit('sgemm')} (`benchmarks/results/h200-sgemm.json`)."


SIZES = (128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)


@figure
def ladder_table() -> str:
    """All steps at all sizes."""
    columns = [*LADDER, "torch"]
    head = ["M = N", *(f"`{name}`" for name in LADDER), "cuBLAS"]
    return table(head, [[str(size), *(tflops(name, str(size)) for name in columns)] for size in SIZES])


# Ours in the table of README.md and the front page: the title of the column, and what it is.
SPEED = {
    "strict": ("strict", '`precision="strict"`, plain float32'),
    "dispatch": ("default", "what `fl.matmul` runs"),
}
FEW = ((256, 1024), (1024, 1024), (4096, 1024), (16384, 1024), (8192, 8192))  # M = N and K of README.md's rows


Products = dict[tuple[int, int], dict[str, Any]]


def _products(run: dict[str, Any]) -> Products:
    """The rows of a run by M = N and K, then by contender."""
    found: Products = {}
    for row in run["rows"]:
        found.setdefault((row["shape"]["m"], row["shape"]["k"]), {})[row["kernel"]] = row
    return found


def _of_speed(kernel: str, size: str, k: str) -> dict[str, Any]:
    return dict(_products(run_of("speed"))[int(size), int(k)][kernel])


@figure
def speed(kernel: str, size: str, k: str = "1024") -> str:
    """TFLOP/s of the run that README.md shows."""
    return _rate(_of_speed(kernel, size, k)["gflops"] / 1e3)


@figure
def part_of(whole: str, kernel: str, size: str, k: str = "1024") -> str:
    """The speed of a kernel as a part or a multiple of another's in that run."""
    return f"{_of_speed(kernel, size, k)['gflops'] / _of_speed(whole, size, k)['gflops']:.2g}"


@figure
def error(kernel: str, size: str, k: str = "1024") -> str:
    """The norm of the error in that run, in units of 1e-7."""
    return f"{1e7 * _of_speed(kernel, size, k)['error']['rel_f']:.1f}"


@figure
def mean(file: str, kernel: str, against: str, what: str = "geometric_mean") -> str:
    """How many times as fast as another, over the shapes of a file: their geometric mean, or `minimum`."""
    lines = run_of(file)["summary"]
    return next(f"{row[what]:.2f}" for row in lines if (row["kernel"], row["against"]) == (kernel, against))


@figure
def host_ms(kernel: str, size: str, result: str) -> str:
    """Milliseconds of a call from NumPy to NumPy, its result "fresh" or "out"."""
    for row in results("numpy-to-numpy")["rows"]:
        at = (row["kernel"], *row["shape"].values(), row["result"], row["pause_ms"])
        if at == (kernel, *[int(size)] * 3, result, 0):
            return significant(row["median_us"] / 1e3)
    raise KeyError(f"no call of {kernel} at {size}")


@figure
def speed_table() -> str:
    """What dispatch reaches beside cuBLAS, and the errors of the same products: all of one run."""
    found = run_of("speed")
    command = re.sub(r" --(json|csv|plot) \S+", "", found["command"])
    text = f"{_speed_run(found)} Commit {found['commit'][:7]}, `{command}` (`benchmarks/results/speed.json`)."
    return f"{_speed_lines(_products(found))}\n\n{_filled(text)}"


@figure
def speed_rows() -> str:
    """Five lines of it, under what they come to in one sentence."""
    found = run_of("speed")
    products = _products(found)
    few = {size: products[size] for size in FEW if size in products} or products
    text = f"{_speed_run(found)} Commit {found['commit'][:7]}."
    return f"{_filled(_in_one_sentence(products))}\n\n{_speed_lines(few)}\n\n{_filled(text)}"


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _in_one_sentence(products: Products) -> str:
    large = [rows for (m, _), rows in products.items() if m >= 1024] or list(products.values())
    faster = [rows["dispatch"]["gflops"] / rows["cublas"]["gflops"] for rows in large]
    nearer = [rows["cublas"]["error"]["rel_f"] / rows["dispatch"]["error"]["rel_f"] for rows in large]
    return (
        f"**From 1024 rows on the default is {min(faster):.1f} to {max(faster):.1f} times as fast as cuBLAS's float32 "
        f"product, and its error is {min(nearer):.1f} to {max(nearer):.1f} times smaller.**"
    )


def _speed_lines(products: Products) -> str:
    head = ["M = N", *(cell for title, _ in SPEED.values() for cell in (title, "÷ cuBLAS")), "cuBLAS"]
    head += [f"error of {title}" for title in (*(title for title, _ in SPEED.values()), "cuBLAS")]
    lines = []
    for (m, k), rows in products.items():
        speeds = {kernel: rows[kernel]["gflops"] / 1e3 for kernel in (*SPEED, "cublas")}
        line = [str(m) if k == 1024 else f"{m}, K = {k}"]
        for kernel in SPEED:
            line += [_rate(speeds[kernel]), f"{speeds[kernel] / speeds['cublas']:.2f}"]
        errors = [f"{1e7 * rows[kernel]['error']['rel_f']:.1f}" for kernel in speeds]
        lines.append([*line, _rate(speeds["cublas"]), *errors])
    return table(head, lines)


def _speed_run(run: dict[str, Any]) -> str:
    """Where the table comes from, and its means."""
    ratios = {row["kernel"]: row for row in run["summary"] if row["against"] == "cublas"}
    columns = [
        f"*{SPEED[kernel][0]}* is {SPEED[kernel][1]}: {ratios[kernel]['geometric_mean']:.2f} times cuBLAS in the "
        f"geometric mean of {len(_products(run))} sizes, {ratios[kernel]['minimum']:.2f} at least"
        for kernel in SPEED
    ]
    clocks = [[row["clocks"]["sm_mhz"] for row in rows.values() if row["clocks"]] for rows in _products(run).values()]
    apart = max((max(mhz) / min(mhz) - 1 for mhz in clocks if mhz), default=0.0)
    machine, peak = run["machine"], significant(run["machine"]["peak_gflops"] / 1e3)
    return (
        f"TFLOP/s by the median time on one {machine['gpu']} (float32 peak {peak}), K = 1024 unless said otherwise, by "
        f"turns at clocks at most {100 * apart:.1f} % apart. {'; '.join(columns)}. Errors are norms relative to the "
        "product in float64, in units of 10⁻⁷."
    )


def _rate(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


@figure
def vector_table() -> str:
    """The SGEMV ladder, and what dispatch takes, beside cuBLAS."""
    names = ["warp_per_row", "warp_per_row_vec4", "rows_per_warp", "rows_per_warp_vec4", "short_rows", "torch"]
    head = ["A", *(f"`{name}`" for name in names[:-1]), "cuBLAS"]
    lines = [[f"16384 × {n}", *(vector_us(name, "16384", n) for name in names)] for n in ("16", "32", "128")]
    return table(head, lines)


@figure
def transpose_table() -> str:
    """The transposes at 2048 x 512: time, and how much of each sector they use."""
    names = ["naive", "naive_32x32", "naive_16x16", "naive_8x8", "row2", "smem", "vec4_direct", "vec4_rows", "vec2"]
    lines = []
    for name in [*names, "tiled"]:
        read = counters("transpose").get(name)
        used = (
            [f"{significant(float(read[f'{way}_sector_use_pct']))} %" for way in ("load", "store")]
            if read
            else ["–", "–"]
        )
        lines.append([f"`{name}`", transpose_us(name), *used])
    return table(["kernel", "µs", "used of a sector, loads", "stores"], lines)


MODELS = {
    "transformer-1024": "transformer, width 1024",
    "transformer-4096": "transformer, width 4096",
    "vision": "vision transformer",
    "mlp-4096": "MLP, width 4096",
    "process-16384": "Gaussian process",
    "inference-1": "forward pass, 128 tokens",
    "inference-8": "1024 tokens",
    "inference-64": "8192 tokens",
}


@figure
def models_table() -> str:
    """Steps of PyTorch models: milliseconds, times as fast as "highest", errors."""
    found = run_of("models/h200")["rows"]
    rows = {(row["case"], row["precision"]): row for row in found if not row["compiled"]}
    lines = []
    for case, name in MODELS.items():
        sides = [rows[case, precision] for precision in ("highest", "fastlinalg", "high")]
        times = [f"{row['ms']:.1f} ({sides[0]['ms'] / row['ms']:.2f})" for row in sides[1:]]
        what = "loss_error" if case.startswith("inference") else "gradient_error"
        errors = [f"{row[what]:.1e}" for row in sides]
        lines.append([name, f"{sides[0]['ms']:.1f}", *times, *errors])
    head = ["model", '"highest", ms', "in the mode", "TF32", 'error of "highest"', "in the mode", "TF32"]
    return table(head, lines)


@figure
def accuracy_table(data: str) -> str:
    """Norms of the errors of positive data, in units of 1e-7, at M = N = 1024."""
    products = ["cuBLAS float32", "strict", "fp16x2", "bf16x6"]
    lines = []
    for row in run_of("accuracy/h200")["rows"]:
        if row["size"] == 1024 and row["k"] in (1024, 8192, 65536) and row["data"].startswith(data):
            norms = (row["errors"][name]["norm"] for name in products)
            lines.append([str(row["k"]), *(significant(1e7 * norm, 2) for norm in norms)])
    return table(["K", *products], lines)


# ---------------------------------------------------------------- steps from asynchronous copies on


def _step(kernel: str, size: str) -> float:
    """TFLOP/s by the median time; a size is M (and N, with K = 1024) or MxNxK."""
    m, n, k = map(int, size.split("x")) if "x" in size else (int(size), int(size), 1024)
    for row in run_of("ladder")["rows"]:
        if row["kernel"] == kernel and row["shape"] == {"m": m, "n": n, "k": k}:
            return 2e-6 * m * n * k / float(row["median_us"])
    raise KeyError(f"ladder: no row of {kernel} at {size}")


@figure
def steps(kernels: str, sizes: str) -> str:
    """Steps beside each other and cuBLAS."""
    columns = kernels.split(",")
    head = [
        "M × N × K" if "x" in sizes else "M = N, K = 1024",
        *(f"`{kernel}`" for kernel in columns),
        "cuBLAS float32",
    ]
    lines = [
        [size.replace("x", " × "), *(significant(_step(kernel, size)) for kernel in (*columns, "torch"))]
        for size in sizes.split(",")
    ]
    text = f"TFLOP/s by the median time on one {run_of('ladder')['machine']['gpu']} (`benchmarks/results/ladder.json`)."
    return f"{table(head, lines)}\n\n{text}"


@figure
def ladder_counters(kernels: str, names: str, shape: str = "2048x2048x1024") -> str:
    """Counters of steps beside each other, and their time and speed under the profiler."""
    m, n, k = map(int, shape.split("x"))
    found = {line["kernel"]: line for line in lines_of("h100-counters-ladder") if line["shape"] == shape}
    columns = {kernel: found[kernel] for kernel in kernels.split(",")}
    for kernel, line in columns.items():
        columns[kernel] = line | {"tflops": f"{2e-3 * m * n * k / float(line['time_ns'])}"}
    return _beside(columns, shape, names)


@figure
def range_cost() -> str:
    """TFLOP/s of accurate products by what their data are, and of strict ones."""
    rows = lines_of("range-cost")
    found = {(row["size"], row["k"], row["data"]): row["TFLOP/s"] for row in rows}
    kinds = {"normal": "two terms", "graded": "graded data", "180 octaves": "180 powers of two", "strict": "strict"}
    sizes = list(dict.fromkeys((row["size"], row["k"]) for row in rows))
    lines = [[f"{size}, K = {k}", *(found[size, k, kind] for kind in kinds)] for size, k in sizes]
    return table(["M = N", *kinds.values()], lines)


@figure
def tensor_table(what: str, value: str, sizes: str = "4096x1024,4096x8192,8192x1024,8192x8192") -> str:
    """Programs of examples/tensor_cores beside each other: `TFLOP/s`, or an error in units of 1e-7."""
    columns = [name.replace("_", " ") for name in what.split(",")]
    lines = []
    for size in sizes.split(","):
        n, k = size.split("x")
        found = {row["what"]: row for row in lines_of("tensor-cores") if (row["m = n"], row["k"]) == (n, k)}
        cells = [float(found[name][value.replace("_", " ")]) for name in columns]
        lines.append([f"{n}, K = {k}", *(f"{c:.0f}" if value == "TFLOP/s" else significant(1e7 * c, 2) for c in cells)])
    return table(["M = N", *columns], lines)


# ---------------------------------------------------------------- files that are read without a build

PLACES = {"README.md": ["speed_rows"]}
PICTURES = ROOT / "docs" / "pictures"  # those of README.md, which is read without a build: each says what it is made of
SHOWN = ("speed",)


def made_of() -> str:
    """A digest of what the pictures show and of what draws them."""
    sources = (RESULTS / "speed.json", ROOT / "docs" / "drawings" / "measured.py")
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def stale_pictures() -> list[str]:
    """Pictures that were made of something else; all, if there are none."""
    files = sorted(PICTURES.glob("*.svg"))
    return [path.name for path in files if made_of() not in path.read_text()] if files else list(SHOWN)


def refreshed(text: str) -> str:
    """`text` with what stands between the marks of a table made anew."""

    def replace(match: re.Match[str]) -> str:
        return f"{match[1]}\n{FUNCTIONS[match[2]]()}\n\n{match[4]}"

    pattern = r"(<!-- figures: (\w+) -->\n)(.*?)(<!-- end of figures -->)"
    return re.sub(pattern, replace, text, flags=re.DOTALL)


def main() -> None:
    if stale_pictures():
        if sys.argv[1:] != ["--write"]:
            sys.exit(f"docs/pictures is not of benchmarks/results/speed.json; {COMMAND}")
        import drawings

        drawings.render_for_both(PICTURES, SHOWN, made_of())
    for place in PLACES:
        path = ROOT / place
        text = path.read_text()
        if sys.argv[1:] == ["--write"]:
            path.write_text(refreshed(text))
        elif text != refreshed(text):
            sys.exit(f"{place}: its figures are not those of benchmarks/results; {COMMAND}")


if __name__ == "__main__":
    main()
