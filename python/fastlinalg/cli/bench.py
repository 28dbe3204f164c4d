"""``fastlinalg bench``: options, and the run from them to tables and files."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastlinalg as fl

from .. import _core
from .._info import OPERATIONS
from .._text import unknown
from ._numbers import positive, seconds, seed, threads
from ._parser import error, file_name, names
from .info import unavailable

if TYPE_CHECKING:
    from ..bench.problems import Problem
    from ..bench.results import Document
    from ..bench.runner import Settings
    from ..bench.timing import Plan

    Job = tuple[str, Settings, list[Problem]]  # "host" or another operation first

PRECISIONS = ("accurate", "strict", "reproducible")
QUICK = {"repeats": 7, "budget_s": 0.2, "limit_s": 1.0}
FULL = {"repeats": 15, "budget_s": 0.5, "limit_s": 5.0}


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("bench", help="measure the kernels, alone or against other libraries")
    ops = parser.add_subparsers(dest="op", required=True, metavar=f"{{{','.join((*OPERATIONS, 'host', 'all'))}}}")
    for op in OPERATIONS:
        one = ops.add_parser(op, help=f"the kernels of {op}")
        _add_kernels(one, op)
        one.add_argument("--shapes", metavar="S,S", help=SHAPES[op])
        if op == "sgemm":
            one.add_argument("--data", type=names, metavar="D,D", help="what operands hold, or all; default: normal")
        _add_common(one)
    host = ops.add_parser("host", help="whole calls, NumPy to NumPy")
    host.add_argument("--shapes", metavar="S,S", help=SHAPES["host"])
    host.add_argument("--precision", choices=PRECISIONS, help=f"default: {PRECISIONS[0]} and {PRECISIONS[1]}")
    _add_host(host)
    _add_common(host, "what the library chooses")
    everything = ops.add_parser("all", help="all of these; host where there is a GPU")
    _add_kernels(everything, "sgemm")
    _add_host(everything)
    _add_common(everything)
    parser.set_defaults(run=run)


SHAPES = {
    "sgemm": "M (for MxMx1024) or MxNxK, with *BATCH and :TN, or :AAT for A times its transpose",
    "sgemv": "MxN",
    "transpose": "MxN",
    "host": "M (a cube) or MxNxK, with :F or :strided",
}
# Of options that not every operation has.
ABSENT: dict[str, Any] = {**dict.fromkeys(("kernels", "data", "shapes", "random", "precision")), "devices": []}


def _add_kernels(parser: argparse.ArgumentParser, op: str) -> None:
    parser.add_argument(
        "--kernels", type=names, metavar="A,B", help="kernels by name, or dispatch (default: all that run here)"
    )
    parser.add_argument(
        "--random",
        type=positive,
        metavar="N",
        help="N shapes drawn log-uniformly, with random transpositions, padded"
        " rows and unaligned operands; --seed draws others",
    )
    if op == "sgemm":
        parser.add_argument("--precision", choices=PRECISIONS, help=f"of sgemm; default: {PRECISIONS[0]}")


def _add_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--devices", type=names, metavar="N,N", help="host calls also on these GPUs together ('all', or '0,2')"
    )


def _add_common(parser: argparse.ArgumentParser, device: str = "cuda if there is one") -> None:
    parser.add_argument("--device", choices=("cpu", "cuda"), help=f"default: {device}")
    parser.add_argument(
        "--against",
        type=names,
        default=[],
        metavar="P,P",
        help="numpy, scipy (CPU), cublas, tf32, cupy (CUDA), torch (both); strict, our own product in that precision",
    )
    parser.add_argument("--json", type=file_name, metavar="FILE", help="write all samples and the machine")
    parser.add_argument("--csv", type=file_name, metavar="FILE", help="write one line per row")
    parser.add_argument("--plot", type=file_name, metavar="FILE.png", help="write a plot per operation")
    parser.add_argument("--quick", action="store_true", help="fewer shapes and repeats: under a minute on a CPU")
    parser.add_argument("--threads", type=threads, metavar="N", help="CPU threads of ours and of the peers")
    parser.add_argument("--repeats", type=positive, metavar="N", help="samples per row (default: 15, 7 with --quick)")
    parser.add_argument(
        "--limit",
        type=seconds,
        metavar="S",
        help="skip a kernel above so many seconds per call (default: 5, 1 with --quick)",
    )
    parser.add_argument("--seed", type=seed, default=0, help="of the operands and of --random (default: 0)")
    parser.set_defaults(**ABSENT)


def _fail(message: str, status: int = 2) -> int:
    return error("bench", message, status)


def _wrong_suffix(path: str) -> str:
    """Why there cannot be a plot of this name, "" if there can."""
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if Path(path).suffix[1:].lower() in known:
        return ""
    return f"--plot {path}: the name has to end in one of {', '.join(f'.{name}' for name in sorted(known))}"


def run(args: argparse.Namespace) -> int:
    if args.plot and importlib.util.find_spec("matplotlib") is None:
        return _fail("--plot needs matplotlib; install it with: pip install matplotlib", 1)
    if args.plot and (wrong := _wrong_suffix(args.plot)):
        return _fail(wrong)
    try:
        for path in filter(None, (args.json, args.csv, args.plot)):
            open(path, "ab").close()  # before measuring for minutes
    except OSError as error:
        return _fail(f"cannot write {error.filename}: {error.strerror}")
    cuda = fl.info()["cuda"]
    device = args.device or ("cuda" if cuda["available"] else "cpu")
    if device == "cuda" and not cuda["available"]:
        return _fail(f"--device cuda: {unavailable(cuda)}", 1)

    from ..bench.peer import MissingPeer
    from ..bench.runner import UnknownKernel

    if args.threads is not None:
        fl.set_num_threads(args.threads)
        if args.threads > _core.max_threads():
            print(
                f"fastlinalg bench: warning: --threads {args.threads}: there are CPUs for {_core.max_threads()}",
                file=sys.stderr,
            )
    try:
        jobs = _jobs(args, device)
    except (MissingPeer, UnknownKernel, ValueError) as error:
        return _fail(str(error))
    return _measure(args, device, jobs)


def _jobs(args: argparse.Namespace, device: str) -> list[Job]:
    """What to run: the kernels, and whole calls on NumPy arrays."""
    jobs: list[Job] = []
    if args.op != "host":
        settings = _settings(args, device)
        jobs.append((args.op, settings, _problems(args, settings)))
    kernels_alone = args.kernels or args.random
    if args.op == "host" or (args.op == "all" and device == "cuda" and not kernels_alone):
        jobs.append(("host", _host_settings(args), _problems_of("host", args)))
    return jobs


def _plan(args: argparse.Namespace) -> tuple[Plan, float]:
    from ..bench.timing import Plan

    defaults = QUICK if args.quick else FULL
    plan = Plan(int(args.repeats or defaults["repeats"]), defaults["budget_s"] * 1e6)
    return plan, defaults["limit_s"] if args.limit is None else args.limit


def _host_settings(args: argparse.Namespace) -> Settings:
    from ..bench.peers import HOST_PEERS, load_for_host
    from ..bench.runner import Settings

    names = [name for name in args.against if args.op == "host" or name in HOST_PEERS]
    on_gpu = args.device != "cpu" and fl.cuda.is_available()
    precisions = [args.precision] if args.precision else PRECISIONS[:2]
    devices = _devices(args.devices)
    return Settings(
        args.device or "auto", precisions, load_for_host(names, on_gpu), *_plan(args), args.seed, devices=devices
    )


def _devices(asked: list[str]) -> list[str]:
    """The devices of calls on several, as fl.matmul names them."""
    there = [str(i) for i in range(len(fl.devices()))]
    wanted = there if asked == ["all"] else asked
    if not asked:
        return []
    if len(set(wanted)) < 2 or len(set(wanted)) < len(wanted) or not set(wanted) <= set(there):
        raise ValueError(
            f"--devices must be 'all' or two or more numbers of GPUs, each once, got {','.join(asked)!r}; "
            f"this machine has {len(there)}"
        )
    return [f"cuda:{number}" for number in wanted]


def _settings(args: argparse.Namespace, device: str) -> Settings:
    from ..bench.contenders import STRICT
    from ..bench.peers import load
    from ..bench.runner import Settings

    peers = load([name for name in args.against if name != STRICT], device, args.threads)
    precisions = [args.precision or PRECISIONS[0]]
    return Settings(device, precisions, peers, *_plan(args), args.seed, args.kernels, STRICT in args.against)


def _problems(args: argparse.Namespace, settings: Settings) -> list[Problem]:
    from ..bench.data import NAMES, NORMAL
    from ..bench.runner import UnknownKernel, kernel_names

    def known(op: str, wanted: list[str] | None = None) -> list[str]:
        return kernel_names(op, settings.device, wanted, settings.precisions[0])

    ops = OPERATIONS if args.op == "all" else (args.op,)
    if args.shapes is not None and args.random:
        raise ValueError("--shapes and --random exclude each other")
    chosen = {name for op in ops for name in known(op, args.kernels)}
    for name in args.kernels or ():
        if name not in chosen:
            there = dict.fromkeys(name for op in ops for name in known(op))
            raise UnknownKernel(unknown(f"{settings.device} kernel", name, there))
    kinds = list(NAMES) if args.data == ["all"] else args.data or [NORMAL]
    for kind in kinds:
        if kind not in NAMES:
            raise ValueError(unknown("data", kind, NAMES))
    return [replace(problem, data=kind) for op in ops for problem in _problems_of(op, args) for kind in kinds]


def _problems_of(op: str, args: argparse.Namespace) -> list[Problem]:
    from ..bench.problems import parse, random, standard

    if args.random:
        return random(op, args.random, args.seed, args.quick)
    return standard(op, args.quick) if args.shapes is None else parse(op, args.shapes)


def _peak_gflops(device: str, threads: int) -> float:
    if device == "cuda":
        return float(fl.devices()[0]["peak_gflops"])
    return max(float(_core.cpu_peak_gflops(threads)) for _ in range(5))  # the best: other load only lowers it


def _measure(args: argparse.Namespace, device: str, jobs: list[Job]) -> int:
    from ..bench import machine, nvml, report
    from ..bench.busy import busy
    from ..bench.host import HostRunner
    from ..bench.results import Document
    from ..bench.runner import Runner

    threads = fl.get_num_threads()
    others = busy(device)
    if others:
        print(f"fastlinalg bench: warning: {others}: times will be too long, and ratios unsteady", file=sys.stderr)
    peak = _peak_gflops(device, threads)
    described = machine.describe(device, peak, threads) | {"busy": others}
    sensors = nvml.sensors if device == "cuda" else dict
    before = sensors() or None
    if device == "cuda" and before is None:
        print(
            "fastlinalg bench: warning: the clocks of the GPU are unknown (is nvidia-ml-py installed?): a ratio may be "
            "of two clocks",
            file=sys.stderr,
        )
    peers = {peer.name: peer.version for _, settings, _ in jobs for peer in settings.peers}
    run = machine.head(["fastlinalg", *args.argv], described)
    document = Document({"op": args.op, **run, "peers": peers}, peak)
    with report.progress(sum(len(problems) for *_, problems in jobs)) as shown:
        for op, settings, problems in jobs:
            (HostRunner if op == "host" else Runner)(settings, document, shown).run(problems)
    described["clocks"] = {"before": before, "after": sensors() or None}

    report.print_tables(document)
    wrong = any(row.wrong and not row.peer for row in document.rows) or not document.rows
    return 1 if _write_files(args, document) or wrong else 0


def _write_files(args: argparse.Namespace, document: Document) -> int:
    """What was measured for minutes into each file that can be written. Returns the exit status."""
    status = 0
    writers: list[tuple[str, Callable[[str], object]]] = [
        (args.json, document.write_json),
        (args.csv, document.write_csv),
    ]
    if args.plot and document.rows:
        from ..bench import plot

        writers.append((args.plot, lambda path: plot.write(document, path)))
    for path, write in writers:
        try:
            if path:
                write(path)
        except OSError as error:
            status = _fail(f"cannot write {path}: {error.strerror}", 1)
    return status
