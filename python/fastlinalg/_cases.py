"""Awkward calls of every operation, for ``fastlinalg selftest`` and the test suite.

>>> import fastlinalg as fl
>>> from fastlinalg import _cases, _check
>>> for case in _cases.cases("sgemm", quick=True):
...     result = getattr(fl, case.op)(*case.operands, **case.options)
...     assert _check.error_units(result, case.expected) <= 1, case.label
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ._check import Array, Expected, Options, canaries, expected_result
from ._info import OPERATIONS


@dataclass(frozen=True, eq=False)
class Case:
    """One call: ``getattr(fastlinalg, op)(*operands, **options)``.

    Attributes
    ----------
    op, label : str
        The function, and what the case is about.
    operands : tuple
        Its positional arguments (float32 arrays of any layout, the addend last where beta is not 0).
    options : dict
        Its keyword arguments.
    exact : bool
        The result must equal `expected` bit for bit as a float32.
    plain : bool
        All operands are C-contiguous and no dimension is 1: no kernel may refuse the case in aligned memory.
    out : str
        The layout of the ``out=`` to pass: "" for none, else see `_check.make_out`.
    """

    op: str
    label: str
    operands: tuple[Any, ...]
    options: Options = field(default_factory=dict)
    exact: bool = False
    out: str = ""

    @cached_property
    def expected(self) -> Expected:
        expected = expected_result(self.op, self.operands, self.options)
        return Expected(expected.value, np.zeros(expected.value.shape)) if self.exact else expected

    @property
    def plain(self) -> bool:
        arrays = [x for x in self.operands if x is not None]
        return all(x.flags.c_contiguous and 1 not in x.shape for x in arrays) and self.out in ("", "C")

    @property
    def terms(self) -> str:
        """What kernels that split their operands into terms do: they "take" the case or "refuse" its numbers.

        They do not split ("") what has a small k; see ``TERMS_SMALLEST_K`` in the C++ sources.
        """
        a, b = (*self.operands, None)[:2]
        if self.op != "sgemm" or a.shape[-2 if self.options.get("trans_a") else -1] < 256:
            return ""
        return "take" if np.isfinite(a).all() and np.isfinite(b).all() else "refuse"

    def __str__(self) -> str:
        return self.label


TILES = (4, 8, 16, 32, 64, 128)
SHAPES = (
    *[(0, 0, 0), (0, 5, 3), (5, 0, 3), (4, 6, 0), (1, 1, 0), (1, 1, 1), (1, 7, 1), (7, 1, 1), (1, 1, 9), (2, 2, 2)],
    *[(1, 33, 17), (33, 1, 17), (1, 130, 65), (130, 1, 65), (5, 4, 1), (129, 130, 1), (3, 5, 2), (6, 9, 7)],
    *itertools.chain.from_iterable([(t - 1, t + 1, t), (t, t, t - 1), (t + 1, t - 1, t + 1), (t, t, t)] for t in TILES),
    *[(13, 17, 19), (31, 37, 41), (67, 61, 71), (131, 137, 139), (96, 160, 40), (257, 129, 33)],
    *[(1000, 3, 5), (3, 1000, 5), (2, 3, 3001), (257, 5, 129), (5, 257, 129), (640, 8, 16), (8, 640, 16)],
    *[(17, 19, 511), (17, 19, 512), (17, 19, 513), (24, 28, 1023), (9, 11, 4097)],
    *[(150, 70, 300), (70, 150, 260), (129, 257, 320), (200, 140, 1100)],
)
QUICK_SHAPES = (
    *SHAPES[:18],
    *[(15, 17, 16), (33, 31, 33), (64, 64, 64), (127, 129, 128), (131, 137, 139), (17, 19, 513), (150, 70, 300)],
)
SCALARS = ((1.0, 0.0), (-1.0, 1.0), (0.5, -2.25), (1.0 / 3.0, 1.0), (0.0, 0.0), (0.0, 1.0), (0.0, 3.0))
TURNS = (("plain", 1.0, 0.0), ("alpha", -0.75, 0.0), ("beta 1", 1.0, 1.0), ("beta", 1.5, -0.5))
LAYOUTS = ("F", "rows ::2", "columns ::2", "rows ::-1", "columns ::-1", "one row repeated", "offset 1")


def relayout(x: Array, layout: str) -> Array:
    """The same values (but for "one row repeated") in another layout of memory."""
    rows, cols = x.shape[-2:]
    if layout == "F":
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == "one row repeated":
        return np.broadcast_to(x[..., :1, :], x.shape)
    if layout == "offset 1":
        flat = canaries(x.size + 2)[1:-1]
        flat[:] = x.ravel()
        return flat.reshape(x.shape)
    down, along = (2, 1) if layout == "rows ::2" else (1, 2) if layout == "columns ::2" else (1, 1)
    parent = canaries(x[..., 0, 0].size * rows * down * cols * along).reshape(*x.shape[:-2], rows * down, cols * along)
    view = parent[..., ::down, ::along]
    view = view[..., ::-1, :] if layout == "rows ::-1" else view[..., ::-1] if layout == "columns ::-1" else view
    view[...] = x
    return view


def cases(op: str, *, quick: bool = False, seed: int = 0) -> Iterator[Case]:
    """The awkward cases of one operation.

    Shapes, transposes, scalars, layouts, batches, results that are exact, NaN and Inf.
    """
    rng = np.random.default_rng(seed)
    shapes = QUICK_SHAPES if quick else SHAPES
    if op == "transpose":
        return _transpose_cases(rng, shapes)
    if op == "sgemm":
        return _sgemm_cases(rng, shapes)
    if op == "ssyrk":
        return _ssyrk_cases(rng, shapes)
    if op == "sgemv":
        return _sgemv_cases(rng, shapes)
    raise ValueError(f"op must be one of {', '.join((*OPERATIONS, 'ssyrk'))}, got {op!r}")


def _normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape, dtype=np.float32)


def _integers(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(-8, 9, shape).astype(np.float32)


def _read(operands: tuple[Array, ...], beta: float) -> tuple[Array, ...]:
    """The addend is the last; calls refuse one that they would not read."""
    return operands if beta else operands[:-1]


def _sgemm_operands(
    rng: np.random.Generator, shape: tuple[int, int, int], ta: bool, tb: bool, make: Any = _normal
) -> Any:
    m, n, k = shape
    return make(rng, *((k, m) if ta else (m, k))), make(rng, *((n, k) if tb else (k, n))), make(rng, m, n)


def _sgemm_cases(rng: np.random.Generator, shapes: tuple[tuple[int, int, int], ...]) -> Iterator[Case]:
    def options(ta: bool = False, tb: bool = False, alpha: float = 1.0, beta: float = 0.0) -> Options:
        return {"trans_a": ta, "trans_b": tb, "alpha": alpha, "beta": beta}

    flags = list(itertools.product((False, True), repeat=2))
    for i, shape in enumerate(shapes):
        name = "x".join(map(str, shape))
        ta, tb = flags[i % 4]
        turn, alpha, beta = TURNS[i // 4 % 4]
        a, b, c = _sgemm_operands(rng, shape, False, False)
        yield Case("sgemm", name, (a, b))
        a, b, c = _sgemm_operands(rng, shape, ta, tb)
        yield Case("sgemm", f"{name} {turn} {'nt'[ta]}{'nt'[tb]}", _read((a, b, c), beta), options(ta, tb, alpha, beta))
    for shape in ((5, 3, 7), (33, 35, 37), (64, 128, 32), (132, 140, 36)):
        name = "x".join(map(str, shape))
        for ta, tb in flags:
            a, b, c = _sgemm_operands(rng, shape, ta, tb)
            for alpha, beta in SCALARS:
                label = f"{name} {'nt'[ta]}{'nt'[tb]} alpha={alpha:.3g} beta={beta:.3g}"
                yield Case("sgemm", label, _read((a, b, c), beta), options(ta, tb, alpha, beta))
            yield Case("sgemm", f"{name} beta=0 over NaN", (a, b), options(ta, tb), out="C")
            dead = [np.full_like(x, np.nan) for x in (a, b)]
            yield Case("sgemm", f"{name} alpha=0, NaN operands", (*dead, c), options(ta, tb, 0.0, -1.0))
            whole = _sgemm_operands(rng, shape, ta, tb, _integers)
            yield Case("sgemm", f"{name} integers", whole, options(ta, tb, 1.0, 2.0), exact=True)
    a, b, c = _sgemm_operands(rng, (34, 40, 36), False, False)
    for layout in LAYOUTS:
        yield Case("sgemm", f"a {layout}", (relayout(a, layout), b))
        yield Case("sgemm", f"b {layout}", (a, relayout(b, layout)))
        scaled = options(alpha=2.0, beta=0.5)
        yield Case("sgemm", f"a, b, c {layout}", tuple(relayout(x, layout) for x in (a, b, c)), scaled)
    for layout in ("C", "F", "strided", "reversed"):
        yield Case("sgemm", f"out {layout}", (a, b, c), options(alpha=-1.0, beta=1.0), out=layout)
        yield Case("sgemm", f"out {layout}, transposed a", (_normal(rng, 36, 34), b), options(ta=True), out=layout)
    for batch in (0, 1, 3):
        a, b, c = _normal(rng, batch, 33, 20), _normal(rng, batch, 20, 36), _normal(rng, batch, 33, 36)
        yield Case("sgemm", f"batch {batch}", (a, b, c), options(alpha=0.5, beta=2.0))
        yield Case("sgemm", f"batch {batch}, one b", (a, b[0] if batch else _normal(rng, 20, 36)))
    yield Case("sgemm", "batch 2x3", (_normal(rng, 2, 1, 9, 12), _normal(rng, 3, 12, 8)))
    yield from _exact_products(rng)
    yield from _special_products(rng)


def _ssyrk_cases(rng: np.random.Generator, shapes: tuple[tuple[int, int, int], ...]) -> Iterator[Case]:
    def options(trans: bool, uplo: str | None, alpha: float = 1.0, beta: float = 0.0) -> Options:
        return {"trans": trans, "uplo": uplo, "alpha": alpha, "beta": beta}

    ways = list(itertools.product((False, True), (None, "L", "U")))
    for i, (n, _, k) in enumerate((*shapes, (300, 300, 70), (140, 140, 600))):
        trans, uplo = ways[i % 6]
        turn, alpha, beta = TURNS[i // 6 % 4]
        a, c = _normal(rng, *((k, n) if trans else (n, k))), _normal(rng, n, n)
        label = f"{n}x{k} {turn} {'nt'[trans]} uplo={uplo}"
        yield Case("ssyrk", label, _read((a, c), beta), options(trans, uplo, alpha, beta))
    for trans, uplo in ways:
        a, c = _normal(rng, 37, 37), _normal(rng, 37, 37)
        for alpha, beta in SCALARS:
            label = f"37x37 {'nt'[trans]} uplo={uplo} alpha={alpha:.3g} beta={beta:.3g}"
            yield Case("ssyrk", label, _read((a, c), beta), options(trans, uplo, alpha, beta))
        for layout in LAYOUTS:
            moved = relayout(a, layout), relayout(c, layout)
            yield Case("ssyrk", f"{layout} uplo={uplo}", moved, options(trans, uplo, 0.5, 1.0))
        stack = _normal(rng, 3, 20, 20)
        yield Case("ssyrk", f"batch uplo={uplo}", (stack, c[:20, :20]), options(trans, uplo, 1.0, 2.0))


def _exact_products(rng: np.random.Generator) -> Iterator[Case]:
    for n in (1, 4, 33, 64, 129):
        a, eye, shuffled = _normal(rng, n + 3, n), np.eye(n, dtype=np.float32), rng.permutation(n)
        yield Case("sgemm", f"a @ identity {n}", (a, eye), exact=True)
        yield Case("sgemm", f"identity @ b {n}", (eye, np.ascontiguousarray(a.T)), exact=True)
        yield Case("sgemm", f"a @ permutation {n}", (a, np.ascontiguousarray(eye[shuffled])), exact=True)
    for shape in ((1, 3, 2), (7, 9, 33), (65, 63, 130)):
        yield Case("sgemm", f"integers {shape}", _sgemm_operands(rng, shape, False, False, _integers)[:2], exact=True)
    a, b, _ = _sgemm_operands(rng, (20, 24, 16), False, False)
    steps = (2.0 ** np.arange(-60, 60, 6)[:20, None]).astype(np.float32)
    yield Case("sgemm", "rows scaled by powers of two", (a * steps, b))
    yield Case("sgemm", "cancelling", (np.hstack([a, -a]), np.vstack([b, b])))


def _special_products(rng: np.random.Generator) -> Iterator[Case]:
    for shape in ((5, 6, 7), (40, 44, 36), (129, 132, 68), (132, 136, 300)):
        a, b, _ = _sgemm_operands(rng, shape, False, False)
        m, n, k = shape
        one_nan, one_inf, negative, no_column = a.copy(), b.copy(), a.copy(), a.copy()
        one_nan[m // 2, k - 1], one_inf[k // 2, n - 2], negative[m - 1, 0] = np.nan, np.inf, -np.inf
        no_column[:, k // 2] = 0.0
        yield Case("sgemm", f"NaN in a {shape}", (one_nan, b))
        yield Case("sgemm", f"Inf in b {shape}", (a, one_inf))
        yield Case("sgemm", f"-Inf in a {shape}", (negative, b))
        yield Case("sgemm", f"0 * Inf {shape}", (no_column, one_inf))
    tiny = np.full((9, 8), 1e-20, np.float32)
    yield Case("sgemm", "subnormal products are kept", (tiny, tiny.T.copy()))


def _sgemv_cases(rng: np.random.Generator, shapes: tuple[tuple[int, int, int], ...]) -> Iterator[Case]:
    def options(trans: bool = False, alpha: float = 1.0, beta: float = 0.0) -> Options:
        return {"trans": trans, "alpha": alpha, "beta": beta}

    def operands(rows: int, cols: int, trans: bool, make: Any = _normal) -> tuple[Array, Array, Array]:
        m, n = (cols, rows) if trans else (rows, cols)
        return make(rng, rows, cols), make(rng, n), make(rng, m)

    sizes = dict.fromkeys((x, y) for m, n, k in shapes for x, y in ((m, n), (m, k), (k, n)))
    for i, (rows, cols) in enumerate(sizes):
        turn, alpha, beta = TURNS[i % 4]
        for trans in (False, True):
            label = f"{rows}x{cols} {'nt'[trans]} {turn}"
            yield Case("sgemv", label, _read(operands(rows, cols, trans), beta), options(trans, alpha, beta))
    for rows, cols, trans in itertools.product((5, 33, 300), (3, 16, 32, 130), (False, True)):
        a, x, y = operands(rows, cols, trans)
        name = f"{rows}x{cols} {'nt'[trans]}"
        for alpha, beta in SCALARS:
            label = f"{name} alpha={alpha:.3g} beta={beta:.3g}"
            yield Case("sgemv", label, _read((a, x, y), beta), options(trans, alpha, beta))
        yield Case("sgemv", f"{name} beta=0 over NaN", (a, x), options(trans), out="C")
        dead = (np.full_like(a, np.nan), np.full_like(x, np.nan), y)
        yield Case("sgemv", f"{name} alpha=0, NaN operands", dead, options(trans, 0.0, -1.0))
        whole = operands(rows, cols, trans, _integers)
        yield Case("sgemv", f"{name} integers", whole, options(trans, 1.0, 2.0), exact=True)
        one_nan, one_inf = a.copy(), a.copy()
        one_nan[rows // 2, cols - 1], one_inf[rows - 1, cols // 2] = np.nan, np.inf
        yield Case("sgemv", f"{name} NaN in a", (one_nan, x), options(trans))
        yield Case("sgemv", f"{name} Inf in a", (one_inf, x), options(trans))
        yield Case("sgemv", f"{name} 0 * Inf", (one_inf, np.zeros_like(x)), options(trans))
    for layout, trans in itertools.product(LAYOUTS, (False, True)):
        a, x, y = operands(34, 40, trans)
        yield Case("sgemv", f"a {layout} {'nt'[trans]}", (relayout(a, layout), x, y), options(trans, 1.0, 1.0))
    a, x, y = operands(34, 40, False)
    yield Case("sgemv", "x ::2, y ::-1", (a, np.repeat(x, 2)[::2], y[::-1]), options(False, 0.5, 1.0))
    yield Case("sgemv", "x ::-1, out strided", (a, x[::-1], y), options(False, 1.0, 0.5), out="strided")
    yield Case("sgemv", "x of one value", (a, np.broadcast_to(x[:1], x.shape)), out="reversed")
    for batch in (0, 1, 3):
        stack = _normal(rng, batch, 21, 36), _normal(rng, batch, 36), _normal(rng, batch, 21)
        yield Case("sgemv", f"batch {batch}", stack, options(False, 0.5, 2.0))
    yield Case("sgemv", "batch 3, one x", (_normal(rng, 3, 16, 8), _normal(rng, 8)))


def _transpose_cases(rng: np.random.Generator, shapes: tuple[tuple[int, int, int], ...]) -> Iterator[Case]:
    for rows, cols in dict.fromkeys((x, y) for m, n, k in shapes for x, y in ((m, n), (k, m))):
        yield Case("transpose", f"{rows}x{cols}", (_normal(rng, rows, cols),), exact=True)
    a = _normal(rng, 70, 132)
    for layout in LAYOUTS:
        yield Case("transpose", f"a {layout}", (relayout(a, layout),), exact=True)
    for layout in ("C", "F", "strided", "reversed"):
        yield Case("transpose", f"out {layout}", (a,), exact=True, out=layout)
    for batch in (0, 1, 3):
        yield Case("transpose", f"batch {batch}", (_normal(rng, batch, 33, 36),), exact=True)
    special = a.copy()
    special[0, 0], special[1, 2], special[3, 4], special[-1, -1] = np.nan, np.inf, -np.inf, 1e-40
    yield Case("transpose", "NaN, Inf and subnormals", (special,), exact=True)
