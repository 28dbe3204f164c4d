"""``fastlinalg selftest``: every available kernel against float64."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

import fastlinalg as fl

from .._cases import Case, cases
from .._check import error_units, make_out, untouched, wrong_elements
from .._info import OPERATIONS
from .._text import unknown
from ._numbers import positive, seed
from ._parser import error, names
from .info import unavailable

FAULTS_SHOWN = 5
CHECKED = (*OPERATIONS, "ssyrk")  # by the kernels of sgemm


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("selftest", help="check every available kernel against float64")
    parser.add_argument("--device", choices=("cpu", "cuda", "all"), default="all", help="whose kernels (default: all)")
    parser.add_argument("--kernel", type=names, metavar="A,B", help="only these; fastlinalg kernels has the names")
    parser.add_argument("--quick", action="store_true", help="fewer shapes")
    parser.add_argument("--every", type=positive, default=1, metavar="N", help="only each N-th case, for slow checkers")
    parser.add_argument("--terms", action="store_true", help="with --every: also products by terms of fp16 or bf16")
    parser.add_argument("--op", choices=CHECKED, action="append", help="only this operation; may be repeated")
    parser.add_argument("--seed", type=seed, default=0, help="of the random operands (default: 0)")
    parser.set_defaults(run=run)


@dataclass
class Outcome:
    """What the cases said about one kernel."""

    checks: int = 0
    refused: int = 0
    worst: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.faults and self.checks > 0

    def judge(self, result: Any, again: Any, case: Case, where: str) -> None:
        """Count one result and its repetition."""
        self.checks += 1
        units = error_units(result, case.expected)
        self.worst = max(self.worst, units)
        if units > 1.0:
            self.faults.append(f"{where}: {_describe(result, case, units)}")
        elif again.tobytes() != result.tobytes():
            self.faults.append(f"{where}: a second run gives other bits")


def _describe(result: Any, case: Case, units: float) -> str:
    expected = case.expected
    if result.shape != expected.value.shape or result.dtype != np.float32:
        return f"shape {result.shape} of {result.dtype}, wanted {expected.value.shape} of float32"
    wrong = wrong_elements(result, expected)
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements wrong (error {units:.3g} bounds), first at {first}: "
        f"{result[first]!s}, wanted {expected.value[first]!s}"
    )


def _run_on_host_arrays(case: Case, kernel: str | None, precision: str, device: str) -> Any:
    """One call through the public function; raises AssertionError if it writes where it must not."""
    out: dict[str, Any] = {}
    if case.out:
        out["out"], parent, outside = make_out(case.expected.value.shape, case.out)
    asked = {"precision": precision} if case.op in ("sgemm", "ssyrk") else {}
    before = [x.tobytes() for x in case.operands if x is not None]
    result = getattr(fl, case.op)(*case.operands, **case.options, **asked, **out, kernel=kernel, device=device)
    if before != [x.tobytes() for x in case.operands if x is not None]:
        raise AssertionError("an operand has changed")
    if case.out and result is not out["out"]:
        raise AssertionError("what is returned is not out")
    if case.out and not untouched(parent, outside):
        raise AssertionError("memory around out has changed")
    return result


def _check(outcome: Outcome, case: Case, where: str, may_refuse: bool, call: Callable[[], Any], twice: bool) -> None:
    """Run `call` on one case; a ValueError that says what the kernel needs is right if it may refuse."""
    try:
        result = call()
        again = call() if twice else result
    except ValueError as error:
        if may_refuse and "needs" in str(error):
            outcome.refused += 1
        else:
            outcome.faults.append(f"{where}: {error}")
    except (AssertionError, MemoryError, RuntimeError, TypeError) as error:
        outcome.faults.append(f"{where}: {type(error).__name__}: {error}")
    else:
        outcome.judge(result, again, case, where)


def check_kernel(op_cases: list[Case], kernel: str | None, precision: str, device: str) -> Outcome:
    """All cases of one operation on one kernel; None is what dispatch chooses, which may refuse nothing.

    Results that are exact in "strict" are held to the bound in "accurate".
    """
    outcome = Outcome()
    if precision == "accurate":
        op_cases = [replace(case, exact=False) if case.exact else case for case in op_cases]
    for case in op_cases:
        may_refuse = kernel is not None and not case.plain
        call = partial(_run_on_host_arrays, case, kernel, precision, device)
        _check(outcome, case, case.label, may_refuse, call, True)
    if device == "cpu" or all(case.op == "ssyrk" for case in op_cases):  # in device memory it is a plain product
        return outcome
    from .. import _device_check

    for case in op_cases:
        for placement in _device_check.PLACEMENTS:
            may_refuse = kernel is not None and not (placement.aligned and case.plain)
            where = f"{case.label}, in device memory, {placement}"
            call = partial(_device_check.run, case, kernel, placement, precision)
            _check(outcome, case, where, may_refuse, call, placement.aligned)
    return outcome


def sample(op_cases: list[Case], every: int, terms: bool) -> list[Case]:
    """Each `every`-th case, for checkers that make kernels hundreds of times slower.

    `terms`: if that happens to leave out products by terms of fp16 or bf16, a case that is taken and one that is
    refused come on top. In "accurate" these are most of the kernels' code.
    """
    picked = op_cases[::every]
    for answer in ("take", "refuse") if terms else ():
        cut = [case for case in op_cases if case.terms == answer]
        if not any(case in picked for case in cut):
            picked += cut[-1:]
    return picked


def _subjects(op: str, device: str, wanted: list[str] | None) -> list[tuple[str, str | None, str]]:
    """What there is to test: a label, the kernel to ask for and the precision. What dispatch chooses only if no kernel
    is `wanted` by name.
    """
    rows = [row for row in fl.kernels("sgemm" if op == "ssyrk" else op) if row.device == device and row.available]
    subjects: list[tuple[str, str | None, str]] = [
        (row.name, row.name, "strict" if row.strict else "accurate")
        for row in rows
        if wanted is None or row.name in wanted
    ]
    if wanted is not None:
        return subjects
    if rows:
        subjects.append(("(dispatch)", None, "strict"))
    if any(row.traits.reproducible for row in rows):
        subjects.append(("(dispatch, reproducible)", None, "reproducible"))
    if not all(row.strict for row in rows):
        subjects.append(("(dispatch, accurate)", None, "accurate"))
    return subjects


def _report(op: str, name: str, device: str, outcome: Outcome) -> None:
    verdict = "PASS" if outcome.passed else "FAIL"
    refused = f", {outcome.refused} refused" if outcome.refused else ""
    counts = f"{outcome.checks:>6} cases  worst {outcome.worst:5.3f}"
    print(f"{op:<10}{name:<25}{device:<6}{counts}  {verdict}{refused}", flush=True)
    for fault in outcome.faults[:FAULTS_SHOWN]:
        print(f"    {fault}")
    if len(outcome.faults) > FAULTS_SHOWN:
        print(f"    and {len(outcome.faults) - FAULTS_SHOWN} more")
    if not outcome.faults and not outcome.checks:
        print("    it took none of the cases")


def _cannot_test(wanted: list[str], ops: list[str], device: str) -> int:
    """Says why a kernel cannot be tested and returns the exit status; 0 if all can."""
    every = [row for op in ops for row in fl.kernels("sgemm" if op == "ssyrk" else op)]
    rows = {row.name: row for row in every if device in ("all", row.device)}
    here = [name for name, row in rows.items() if row.available]
    for name in wanted:
        if name not in rows and (elsewhere := {row.device for row in every if row.name == name}):
            return error("selftest", f"--kernel: {name} is a kernel of --device {elsewhere.pop()}, not {device}")
        if name not in rows:
            return error("selftest", f"--kernel: {unknown('kernel', name, here)}")
        if name not in here:
            return error("selftest", f"--kernel: {name} cannot run here: {rows[name].reason}", 1)
    return 0


def run(args: argparse.Namespace) -> int:
    if args.kernel and (status := _cannot_test(args.kernel, args.op or list(CHECKED), args.device)):
        return status
    cuda = fl.info()["cuda"]
    if args.device == "cuda" and not cuda["available"]:
        print(f"no CUDA device to test: {unavailable(cuda)}")
        return 1
    devices = ("cpu", "cuda") if args.device == "all" else (args.device,)
    begin = time.perf_counter()
    print("The worst error is in units of the float32 bound: at most 1 is right.")
    tested = failed = 0
    for op in args.op or CHECKED:
        op_cases = list(cases(op, quick=args.quick, seed=args.seed))
        for device in devices:
            for label, name, precision in _subjects(op, device, args.kernel):
                picked = sample(op_cases, args.every, args.terms and precision == "accurate")
                outcome = check_kernel(picked, name, precision, device)
                _report(op, label, device, outcome)
                tested, failed = tested + 1, failed + (not outcome.passed)
    if args.device == "all" and not args.kernel and not cuda["available"]:
        print(f"CUDA kernels were not tested: {unavailable(cuda)}")
    seconds = time.perf_counter() - begin
    print(f"{tested - failed} of {tested} passed in {seconds:.1f} s" + (f", {failed} FAILED" if failed else ""))
    return 0 if tested and not failed else 1
