"""``fastlinalg tune``: measures which kernels are the faster ones here, and keeps that in the user's cache folder."""

from __future__ import annotations

import argparse
import datetime
import errno
import fcntl
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import fastlinalg as fl

from .. import _core
from .._cases import cases
from .._info import OPERATIONS
from ._parser import error
from .info import unavailable
from .selftest import check_kernel

FORMAT = 2


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("tune", help="measure which kernels are faster on this machine, used from then on")
    parser.add_argument(
        "--device", choices=("cpu", "cuda", "all"), default="all", help="what to measure (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="a third of the shapes, fewer repeats: uncertain by 10 %%")
    parser.add_argument("--force", action="store_true", help="measure although other programs use the machine")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="print the table in use and measure nothing")
    what.add_argument("--reset", action="store_true", help="remove the table")
    parser.set_defaults(run=run)


def _fail(message: str, status: int = 1) -> int:
    return error("tune", message, status)


def run(args: argparse.Namespace) -> int:
    try:
        where = _core.tuning_path()
    except UnicodeDecodeError:
        return _fail("the path of the table is not UTF-8: set FASTLINALG_TUNE to another", 2)
    if not where:
        off = os.environ.get("FASTLINALG_TUNE")
        return _fail(f"FASTLINALG_TUNE={off}: no table is used" if off else "no cache folder: set XDG_CACHE_HOME", 2)
    path = Path(where)
    try:
        if args.show:
            return _show(path)
        return _reset(path) if args.reset else _tune(path, args)
    except BrokenPipeError:  # of our output
        raise
    except OSError as error:
        return _fail(f"{path}: {error.strerror}")


# ---------------------------------------------------------------- the file
# Lines that the library reads (cpp/dispatch/tuning.h), and what --show says of a device as comments among them.
def part_of(device: dict[str, Any]) -> str:
    """The lines of one device."""
    lines = [f"device {device['kind']} {device['name']}", *(f"# {line}" for line in _describe(device))]
    if device["factors"]:
        lines.append("#   corrections, as microseconds by the rule:factor")
    for op, rows in device["factors"].items():
        for kernel, knots in rows.items():
            lines.append(f"row {op} {kernel} {' '.join(f'{us:.4g}:{factor:.4g}' for us, factor in knots)}")
    return "\n".join([*lines, ""])


def text_of(parts: Iterable[str]) -> str:
    return "".join([f"fastlinalg-tuning {FORMAT} {fl.__version__}\n", *parts, "end\n"])


def parts_of(text: str) -> dict[str, str]:
    """By their first lines, which say which device it is."""
    parts = re.split(r"^(?=device )", text.removesuffix("end\n"), flags=re.MULTILINE)[1:]
    return {part.splitlines()[0]: part for part in parts}


def _read(path: Path) -> tuple[str, str]:
    """The table if the library takes it, and else why not ("" if there is none)."""
    if not path.exists():
        return "", ""
    complaint = _core.load_tuning(str(path))
    return "" if complaint else path.read_text(encoding="utf-8", errors="replace"), complaint


def _write(path: Path, text: str) -> None:
    """All or nothing: other processes may be reading it. The caller has locked the folder."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)  # of a run that was killed
    try:
        with new.open("x", encoding="utf-8") as file:  # no link that somebody else has put there
            file.write(text)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _make_room(path: Path) -> None:
    """The folder, in which a file of that name can be made: asked before measuring for minutes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=path.parent).close()
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


def _replace(path: Path, part: str) -> None:
    """Put the part in the place of that device's, among what the table has now: another run may have written it."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        _write(path, text_of((parts_of(_read(path)[0]) | parts_of(part)).values()))
    finally:
        os.close(folder)


def _show(path: Path) -> int:
    text, complaint = _read(path)
    if complaint:
        return _fail(complaint)
    if not text:
        print(f"no table at {path}: the rules of the library choose")
        return 0
    lines = (line.removeprefix("# ") for line in text.splitlines()[1:-1])
    print("\n".join([str(path), *("" if line.startswith("device ") else line for line in lines)]))
    return 0


def _describe(device: dict[str, Any]) -> list[str]:
    lines = [f"{device['name']} ({device['kind']}), measured {device['measured']}"]
    for found in device["found"]:
        lines.append(f"  {found['op']}: {_verdict(found, found['op'] in device['factors'])}")
    for checked in device["checked"]:
        fault = f"WRONG, never chosen: {checked['fault']}" if checked["fault"] else "right"
        lines.append(f"  {checked['op']} {checked['kernel']}: not chosen here before, checked against float64: {fault}")
    return lines


def _verdict(found: dict[str, Any], used: bool) -> str:
    """What tuning is worth, of shapes that it was not fitted to."""
    gain, slack = found["before"] / found["after"], 100 * (found["before"] - 1)
    behind = "the fastest" if slack < 0.5 else f"within {slack:.0f} % of the fastest"
    if not used:
        return (
            f"the library's own choice of kernels is {behind} on this machine, and tuning does not better it: as before"
        )
    percent = f"about {100 * (gain - 1):.0f} % faster"
    return f"{percent} on this machine with the kernels chosen from now on (over {found['shapes']} shapes)"


def _reset(path: Path) -> int:
    existed = path.exists()
    path.unlink(missing_ok=True)
    print(f"removed {path}" if existed else f"no table at {path}")
    return 0


# ---------------------------------------------------------------- measuring
def _tune(path: Path, args: argparse.Namespace) -> int:
    from ..bench.busy import busy

    wanted, cuda = args.device, fl.info()["cuda"]
    if wanted == "cuda" and not cuda["available"]:
        return _fail(f"--device cuda: {unavailable(cuda)}")
    kinds = [kind for kind in ("cuda", "cpu") if wanted in (kind, "all") and (kind == "cpu" or cuda["available"])]
    if not args.force and (others := busy("cuda" if "cuda" in kinds else "cpu")):
        return _fail(f"{others}, so that what is measured would not hold later; try again, or add --force")
    _make_room(path)
    for kind in kinds:
        entry = _measure(kind, args.quick)
        print("\n".join(_describe(entry)))
        _replace(path, part_of(entry))
    complaint = _core.load_tuning(str(path))
    if complaint:
        return _fail(complaint)
    used = _core.tuning_state()["in_use"]
    print(
        f"written to {path}; " + ("new processes use it" if used else "it changes nothing: the rules go on to choose")
    )
    return 0


def _measure(kind: str, quick: bool) -> dict[str, Any]:
    from ..bench.tuning import FULL, QUICK, tune

    terminal = sys.stderr.isatty()

    def note(text: str) -> None:
        if terminal:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    _core.clear_tuning()
    checked = _check_passed_over(kind, note)
    wrong = {op: [row["kernel"] for row in checked if row["op"] == op and row["fault"]] for op in OPERATIONS}
    found = tune(kind, note, wrong, QUICK if quick else FULL)
    note("")
    return {
        "kind": kind,
        "name": _core.cpu_name() if kind == "cpu" else _core.tuned_name(0),
        "measured": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "found": [
            {"op": t.op, "shapes": t.shapes, "before": round(t.before, 4), "after": round(t.after, 4)} for t in found
        ],
        "checked": checked,
        "factors": {t.op: t.factors for t in found if t.factors},
    }


def _check_passed_over(kind: str, note: Callable[[str], None]) -> list[dict[str, str]]:
    """Kernels that were never chosen on this chip, against float64 before they are timed; "fault" is "" if right."""
    checked = []
    for op in OPERATIONS:
        rows = [row for row in fl.kernels(op) if row.device == kind and row.available and row.passed_over]
        quick = list(cases(op, quick=True)) if rows else []
        for row in rows:
            note(f"{op} {row.name}: checked against float64")
            outcome = check_kernel(quick, row.name, "strict" if row.strict else "accurate", kind)
            fault = "" if outcome.passed else next(iter(outcome.faults), "it took none of the cases")
            checked.append({"op": op, "kernel": row.name, "fault": fault})
    return checked
