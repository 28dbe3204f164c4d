"""Random calls of every public operation, each checked: one generator for the properties of hypothesis
(api/test_properties.py) and for tools/fuzz, which draw from it in their own ways.

A call is run twice, on the CPU with different numbers of threads (accurate products on a CPU with AMX with the same, as
one thread takes other kernels there). Both results have the same bits and are within the componentwise bound of
float64, NaN and infinity where float64 has them; no byte beside the result has changed, and none of the operands. Where
operands are of another type, the bits are those of a call on what `astype` makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

import fastlinalg as fl
from support.accuracy import assert_equal_values, assert_same_bits, assert_within, oracle, without_payload
from support.device_libraries import Announced, Placed
from support.layouts import BROADCAST_LAYOUTS, BROADCAST_VECTOR_LAYOUTS, MATRIX_LAYOUTS, VECTOR_LAYOUTS, place, result
from support.operands import CONVERTED
from support.operands import numbers as numbers_of_type

F32 = np.float32
KINDS = ("normal", "normal", "wide", "integers", "zeros", "special")
SCALARS = (1.0, 1.0, 1.0, 0.0, -1.0, 0.5, -2.25, 1e-3)
HALVES = ("f2", "bfloat16") if find_spec("ml_dtypes") else ("f2",)
OTHER_TYPES = [*HALVES, *(name for name in CONVERTED if name not in ("f2", "bfloat16", "g"))]
BATCHES = (((), ()), ((), ()), ((3,), (3,)), ((2,), ()), ((), (2,)), ((2, 1), (3,)), ((0,), (1,)), ((2, 2), (2, 2)))
PRECISIONS = ("accurate", "strict", "reproducible")
OPERATIONS = ("sgemm", "sgemm", "sgemm", "matmul", "plan", "ssyrk", "sgemv", "transpose")
EDGES = (8, 16, 32, 48, 64, 96, 128, 192, 256)  # of tiles, blocks and vectors


class Draws:
    """Choices by a random generator; hypothesis has others."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one_of(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def between(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most + 1))


# ---------------------------------------------------------------- sizes and numbers
def sizes(draws) -> tuple[int, int, int]:
    """m, n, k: few, some, at the edges of tiles, thin, or more."""
    kind = draws.one_of(("few", "some", "some", "some", "edges", "edges", "thin", "more"))
    if kind == "edges":
        m, n, k = (draws.one_of(EDGES) + draws.between(-1, 1) for _ in range(3))
    elif kind == "thin":
        m, n, k = draws.between(0, 9), draws.between(0, 40), draws.between(0, 5000)
        m, n, k = draws.one_of(((m, n, k), (m, k, n), (k, m, n)))
    else:
        m, n, k = (draws.between(0, {"few": 9, "some": 70, "more": 400}[kind]) for _ in range(3))
    return m, n, k


def numbers(rng, kind: str, shape) -> np.ndarray:
    values = rng.standard_normal(shape)
    if kind == "wide":
        values = np.ldexp(values, rng.integers(-55, 55, shape))  # a sum of equal squares too is finite
    elif kind == "integers":
        values = rng.integers(-9, 10, shape)
    elif kind == "zeros":
        values = values * rng.integers(0, 2, shape)
    elif kind == "special":
        at = rng.integers(0, 60, shape)
        values = np.select([at == 0, at == 1, at == 2], [np.nan, np.inf, -np.inf], values)
    return np.asarray(values, F32)


# ---------------------------------------------------------------- operands
@dataclass
class OnDevice:
    """A guarded array of the host copied to device memory, of which a call knows the interface alone; or one of another
    type, and what a call knows by DLPack."""

    guarded: Any
    shift: int = 0
    memory: Any = None

    @property
    def array(self):
        if isinstance(self.guarded, np.ndarray):
            return Placed(self.guarded, self.shift)
        parent = self.guarded.parent
        room = np.zeros(-(-parent.size // 4), F32)
        room.view(np.uint8)[: parent.size] = parent
        self.memory = fl.DeviceArray.from_numpy(room)
        start = self.memory.__cuda_array_interface__["data"][0] + self.guarded.origin
        of_view = {"shape": self.guarded.shape, "strides": self.guarded.strides, "data": (start, False)}
        return Announced(self.memory, **of_view)

    def fetch(self) -> None:
        if isinstance(self.guarded, np.ndarray):
            return
        parent = self.guarded.parent
        parent[:] = self.memory.numpy().view(np.uint8)[: parent.size]


@dataclass
class Case:
    """What was drawn: an operation, its operands by name, its options, and where it runs."""

    operation: str
    device: str
    on_device: bool
    operands: dict[str, Any] = field(default_factory=dict)  # guarded arrays, or arrays of another type
    options: dict[str, Any] = field(default_factory=dict)
    trans: tuple[bool, bool] = (False, False)
    out: Any = None  # (shape, layout), the name of an operand, or None
    threads: tuple[int, int] = (1, 1)
    said: list[str] = field(default_factory=list)
    types: tuple[str, ...] = tuple(OTHER_TYPES)  # of operands that are converted
    shift: int = 0  # of those in device memory, in elements

    def values(self, name: str) -> np.ndarray | None:
        operand = self.operands.get(name)
        if operand is None:
            return None
        with np.errstate(over="ignore"):
            return np.array(unguarded(operand)).astype(F32)

    def known_bits(self, result) -> np.ndarray:
        """A transpose that converts nothing keeps which NaN an element is; nothing else does."""
        moved = self.operation == "transpose" and not isinstance(self.operands["a"], np.ndarray)
        return np.asarray(result) if moved else without_payload(result)

    def __str__(self) -> str:
        where = "arrays in device memory" if self.on_device else f"device={self.device!r}"
        return f"{self.operation} {', '.join(self.said)}, out {self.out}, {self.options}, {where}"


def unguarded(operand) -> np.ndarray:
    return operand if isinstance(operand, np.ndarray) else operand.array


def draw_operand(draws, case: Case, name: str, shape, kind: str, aligned: bool) -> None:
    """An operand in any layout; now and then, where the call may convert it, of another type."""
    matrix = len(shape) > 1
    layouts = (MATRIX_LAYOUTS | BROADCAST_LAYOUTS) if matrix else (VECTOR_LAYOUTS | BROADCAST_VECTOR_LAYOUTS)
    layout = draws.one_of([x for x in layouts if not (aligned and x.startswith("unaligned"))])
    if "dtype" in case.options and draws.between(0, 2):
        layout = draws.one_of(case.types)
        case.operands[name] = of_another_type(draws, layout, shape, kind)
    else:
        case.operands[name] = place(numbers(draws.rng, kind, shape), layout)
    case.said.append(f"{name} {shape} {layout} {kind}")


def of_another_type(draws, dtype: str, shape, kind: str) -> np.ndarray:
    """An array in the order of C or of Fortran, or every other element of a larger one, backwards."""
    order = draws.one_of(("C", "F", "steps"))
    x = numbers_of_type(dtype, *shape, seed=draws.between(0, 2**31))
    if dtype in HALVES and kind != "normal":
        with np.errstate(over="ignore"):
            x = numbers(draws.rng, kind, shape).astype(x.dtype)
    if order != "steps":
        return np.asarray(x, order=order)
    room = np.zeros([2 * n for n in shape], x.dtype)
    view = room[(slice(None, None, -2),) * x.ndim]
    view[...] = x
    return view


def overlaps_itself(x) -> bool:
    return any(stride == 0 and size > 1 for stride, size in zip(x.strides, x.shape, strict=True))


def draw_out(draws, case: Case, shape, aligned: bool) -> None:
    """None, in any layout, or in the place of an operand."""
    guarded = {name: x for name, x in case.operands.items() if not isinstance(x, np.ndarray)}
    alike = [name for name, x in guarded.items() if x.shape == tuple(shape) and not overlaps_itself(x)]
    if case.operation == "plan" and case.options.get("constant") in alike:
        alike.remove(case.options["constant"])
    kind = draws.one_of(("none", "layout", "layout", "operand"))
    if kind == "operand" and alike:
        case.out = draws.one_of(alike)
    elif kind != "none" and shape:
        layouts = MATRIX_LAYOUTS if len(shape) > 1 else VECTOR_LAYOUTS
        case.out = (tuple(shape), draws.one_of([x for x in layouts if not (aligned and x.startswith("unaligned"))]))


def draw_case(draws, device: str, halves: bool = False, kernel: str | None = None) -> Case:
    """`halves`: with operands in 16 bits wherever they are taken; `kernel`: products by this one alone."""
    operation = draws.one_of(("sgemm", "plan") if kernel else OPERATIONS)
    on_device = device == "cuda" and draws.one_of((True, False))
    case = Case(operation, device, on_device, threads=(1, draws.one_of((1, 2, 3, 8))))
    aligned = on_device or operation == "plan"
    if halves or operation == "plan" or on_device:
        case.types = HALVES
    if on_device:
        case.shift = draws.one_of((0, 0, 1, 4))
    if halves or draws.one_of((False, False, False, True)):
        case.options["dtype"] = F32
    draw = {"transpose": draw_transpose, "sgemv": draw_sgemv, "ssyrk": draw_ssyrk}.get(operation, draw_product)
    draw_out(draws, case, draw(draws, case, aligned), aligned)
    if operation not in ("matmul", "plan") and draws.one_of((False, False, False, True)):
        rows = [row.name for row in fl.kernels("sgemm" if operation == "ssyrk" else operation)
                if row.available and row.device == device and row.strict]  # fmt: skip
        case.options["kernel"] = draws.one_of(rows)
        case.options.pop("precision", None)
    if kernel:
        case.options["kernel"] = kernel
        case.options.pop("precision", None)
    return case


def draw_scalars(draws, case: Case, shape, kind: str, aligned: bool, name: str = "c") -> None:
    """alpha, beta and an addend, which may be broadcast."""
    case.options |= {"alpha": draws.one_of(SCALARS), "beta": draws.one_of((0.0, *SCALARS))}
    if case.options["beta"]:
        of_addend = tuple(shape)
        if case.operation != "plan":  # which has it whole
            first = draws.between(0, len(shape) - 1)
            of_addend = tuple(1 if draws.between(0, 3) == 0 else n for n in shape[first:])
        converts = case.options.pop("dtype", None) if case.operation == "plan" else None  # its addend is float32
        draw_operand(draws, case, name, of_addend, kind, aligned)
        case.options |= {"dtype": converts} if converts else {}


def draw_product(draws, case: Case, aligned: bool):
    m, n, k = sizes(draws)
    lead_a, lead_b = draws.one_of(BATCHES) if m * n * k < 200_000 else ((), ())
    kinds = draws.one_of(KINDS), draws.one_of(KINDS)
    case.options["precision"] = draws.one_of(PRECISIONS)
    if case.operation == "matmul":
        vectors = draws.one_of((False, False, True)), draws.one_of((False, False, True))
        lead_a, lead_b = () if vectors[0] else lead_a, () if vectors[1] else lead_b
        draw_operand(draws, case, "a", (k,) if vectors[0] else (*lead_a, m, k), kinds[0], aligned)
        draw_operand(draws, case, "b", (k,) if vectors[1] else (*lead_b, k, n), kinds[1], aligned)
        rows, columns = () if vectors[0] else (m,), () if vectors[1] else (n,)
        return (*np.broadcast_shapes(lead_a, lead_b), *rows, *columns)
    case.trans = draws.one_of((False, True)), draws.one_of((False, True))
    case.options |= {"trans_a": case.trans[0], "trans_b": case.trans[1]}
    draw_operand(draws, case, "a", (*lead_a, *((k, m) if case.trans[0] else (m, k))), kinds[0], aligned)
    draw_operand(draws, case, "b", (*lead_b, *((n, k) if case.trans[1] else (k, n))), kinds[1], aligned)
    shape = (*np.broadcast_shapes(lead_a, lead_b), m, n)
    if case.operation == "plan":
        case.options["constant"] = draws.one_of((None, None, "a", "b"))
    draw_scalars(draws, case, shape, draws.one_of(KINDS), aligned)
    return shape


def draw_ssyrk(draws, case: Case, aligned: bool):
    n, _, k = sizes(draws)
    n = min(n, 500)
    lead = draws.one_of(((), (), (2,), (0,)))
    case.trans = (draws.one_of((False, True)), False)
    case.options |= {"trans": case.trans[0], "uplo": draws.one_of((None, "L", "U")),
                     "precision": draws.one_of(PRECISIONS)}  # fmt: skip
    draw_operand(draws, case, "a", (*lead, *((k, n) if case.trans[0] else (n, k))), draws.one_of(KINDS), aligned)
    draw_scalars(draws, case, (*lead, n, n), draws.one_of(KINDS), aligned)
    return (*lead, n, n)


def draw_sgemv(draws, case: Case, aligned: bool):
    m, _, n = sizes(draws)
    lead_a, lead_x = draws.one_of(BATCHES) if m * n < 20_000 else ((), ())
    case.trans = (draws.one_of((False, True)), False)
    case.options["trans"] = case.trans[0]
    draw_operand(draws, case, "a", (*lead_a, *((n, m) if case.trans[0] else (m, n))), draws.one_of(KINDS), aligned)
    draw_operand(draws, case, "x", (*lead_x, n), draws.one_of(KINDS), aligned)
    shape = (*np.broadcast_shapes(lead_a, lead_x), m)
    draw_scalars(draws, case, shape, draws.one_of(KINDS), aligned, "y")
    return shape


def draw_transpose(draws, case: Case, aligned: bool):
    m, n, _ = sizes(draws)
    lead = draws.one_of(((), (), (2,), (0,), (2, 3)))
    draw_operand(draws, case, "a", (*lead, m, n), draws.one_of(KINDS), aligned)
    return (*lead, n, m)


# ---------------------------------------------------------------- what is right
def expected(case: Case):
    """What the result is in float64, and the bound; of a transpose the bits, and None."""
    a, options = case.values("a"), case.options
    if case.operation == "transpose":
        return a.swapaxes(-1, -2), None
    a = a.swapaxes(-1, -2) if case.trans[0] else a
    alpha, beta = options.get("alpha", 1.0), options.get("beta", 0.0)
    if case.operation == "sgemv":
        b, c = case.values("x")[..., None], case.values("y")
        c = None if c is None else c[..., None]
    else:
        b, c = a.swapaxes(-1, -2) if case.operation == "ssyrk" else case.values("b"), case.values("c")
        b = b.swapaxes(-1, -2) if case.trans[1] else b
    if not alpha:  # neither is read
        a, b = np.zeros_like(a), np.zeros_like(b)
    want, bound = oracle(a, b, c, alpha, beta)
    return (want[..., 0], bound[..., 0]) if case.operation == "sgemv" else (want, bound)


def assert_right(case: Case, got, before) -> None:
    """`before` is what a result with one triangle had in the other."""
    with np.errstate(all="ignore"):
        want, bound = expected(case)
    if bound is None:
        return assert_same_bits(case.known_bits(got), case.known_bits(want), str(case))
    if uplo := case.options.get("uplo"):
        kept = np.broadcast_to(np.tri(want.shape[-1], k=-1, dtype=bool), want.shape)
        kept = kept if uplo == "U" else kept.swapaxes(-1, -2)
        assert_same_bits(np.where(kept, got, 0), np.where(kept, before, 0).astype(F32), f"{case}: the other triangle")
        got, want, bound = np.where(kept, F32(0), got), np.where(kept, 0, want), np.where(kept, 0, bound)
    odd = ~np.isfinite(want)
    assert_equal_values(np.where(odd, got, F32(0)), np.where(odd, want, 0).astype(F32), f"{case}: NaN and infinity")
    assert_within(np.where(odd, F32(0), got), np.where(odd, 0, want), np.where(odd, 0, bound), str(case))


# ---------------------------------------------------------------- running it
def call(case: Case, arrays: dict[str, Any], out) -> Any:
    if case.operation == "plan":
        with fl.Matmul(arrays["a"], arrays["b"], arrays.get("c"), out=out, device=case.device, **case.options) as plan:
            return plan.execute()
    return getattr(fl, case.operation)(*arrays.values(), out=out, device=case.device, **case.options)


def run(case: Case) -> np.ndarray:
    """The result of one run, after checking that nothing else has changed."""
    kept = {name: x.copy() if isinstance(x, np.ndarray) else x.parent.copy() for name, x in case.operands.items()}
    fresh = result(*case.out) if isinstance(case.out, tuple) else None
    places = dict(case.operands) | ({"out": fresh} if fresh else {})
    if case.on_device:
        places = {name: OnDevice(x, case.shift) for name, x in places.items()}
    arrays = {name: unguarded(x) for name, x in places.items()}
    out = arrays.pop("out", None) if fresh or case.out is None else arrays[case.out]
    got = call(case, arrays, out)
    assert out is None or got is out, f"{case}: another object than out is returned"
    if case.on_device:
        got = got.numpy() if out is None else got
        for x in places.values():
            x.fetch()
    target = fresh or (case.operands[case.out] if case.out else None)
    got = np.array(target.array if target else got)
    if fresh:
        fresh.assert_intact(str(case))
    for name, operand in case.operands.items():
        if name == case.out:
            operand.array[...] = kept_view(operand, kept[name])
        now = operand if isinstance(operand, np.ndarray) else operand.parent
        same = now.tobytes() == kept[name].tobytes()
        assert same, f"{case}: {name} or memory beside it has changed"
    return got


def kept_view(guarded, parent) -> np.ndarray:
    """What a guarded array had in a copy of its parent."""
    now = guarded.parent.copy()
    guarded.parent[:] = parent
    before = np.array(guarded.array)
    guarded.parent[:] = now
    return before


def bits_depend_on_threads(case: Case) -> bool:
    of_precision = "kernel" not in case.options and case.options.get("precision", "accurate") == "accurate"
    return case.device != "cuda" and of_precision and has_amx()


@cache
def has_amx() -> bool:
    return any(row.needs == "amx_bf16" and row.available for row in fl.kernels("sgemm"))


def check_list(draws, device: str) -> str:
    """Products of a list have the bits of each alone, which is checked by itself."""
    on_device = device == "cuda" and draws.one_of((True, False))
    precision = draws.one_of(PRECISIONS)
    cases = [Case("matmul", device, on_device) for _ in range(draws.between(0, 6))]
    lists: tuple[list[Any], list[Any]] = [], []
    for case in cases:
        draw_product(draws, case, on_device)
        case.options["precision"] = precision
        for name, of_name in zip("ab", lists, strict=True):
            x = case.operands[name]
            of_name.append((OnDevice(x) if on_device else x).array)
    with fl.num_threads(draws.one_of((1, 2, 3, 8))):
        together = fl.grouped_matmul(*lists, precision=precision, device=device)
        alone = [run(case) for case in cases] if any(map(bits_depend_on_threads, cases)) else None
    for case, got, want in zip(cases, together, alone or map(run, cases), strict=True):
        got = got.numpy() if on_device else got
        assert_same_bits(without_payload(got), without_payload(want), f"in a list: {case}")
    return "grouped_matmul"


def converted_first(case: Case) -> Case:
    operands = {}
    for name, x in case.operands.items():
        with np.errstate(over="ignore"):
            operands[name] = x.astype(F32, order="K") if isinstance(x, np.ndarray) else x
    return replace(case, operands=operands, shift=0)


def check(draws, device: str = "cpu", halves: bool = False, kernel: str | None = None) -> str:
    """Draw a call, run it twice and check it; returns what was called."""
    if not halves and not kernel and draws.between(0, 15) == 0:
        return check_list(draws, device)
    case = draw_case(draws, device, halves, kernel)
    before = np.float32(0)
    if case.options.get("uplo") and case.out:
        before = case.values(case.out) if isinstance(case.out, str) else F32(np.nan)
    try:
        results = []
        for threads in (case.threads[1],) * 2 if bits_depend_on_threads(case) else case.threads:
            with fl.num_threads(threads):
                results.append(run(case))
    except ValueError as error:
        if "kernel" in case.options and f"kernel '{case.options['kernel']}' needs" in str(error):
            return "refused"
        raise AssertionError(f"{case}: {error}") from error
    assert_right(case, results[0], before)
    results = [case.known_bits(x) for x in results]
    assert_same_bits(*results, f"{case}: a second run with {case.threads[1]} threads")
    converts = any(isinstance(x, np.ndarray) for x in case.operands.values())
    if (device == "cpu" or case.on_device) and converts and case.options.get("precision") != "accurate":
        converted = run(converted_first(case))
        assert_same_bits(results[0], case.known_bits(converted), f"{case}: converted first")
    if case.options.get("precision") == "reproducible" and device != "cpu":
        case.device, case.on_device = "cpu", False
        of_cpu = run(case)
        assert_same_bits(results[0], without_payload(of_cpu), f"{case}: bits of the CPU")
    return case.operation
