"""What is compared on one problem, and the two places where it can run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import fastlinalg as fl

from .. import _core
from .._check import Array, canaries
from .nvml import watched
from .operands import Operands, Placed
from .peer import COPY, DeviceOperand, DevicePeer, Peer
from .problems import Problem
from .timing import AMONG_THREADS, ROUNDS, Plan, Quiet, Timing, alternating, by_turns, in_graph, once

DISPATCH = "dispatch"  # the contender that leaves the choice of kernel to the library
STRICT = "strict"  # the same with precision="strict", as something to compare with


@dataclass(frozen=True)
class Contender:
    """A kernel of ours, what a peer offers for the same problem, or a copy of what a transpose moves."""

    name: str
    call: Callable[..., Any]
    peer: Peer | None = None

    @property
    def is_copy(self) -> bool:
        return self.name == COPY

    @property
    def ours(self) -> bool:
        return self.peer is None and not self.is_copy

    @property
    def reference(self) -> bool:
        """Whether the others' speed is given as a ratio to this one's."""
        return not self.ours or self.name == STRICT


def dispatched(kernel: str) -> bool:
    """Whether the library chooses the kernel of this contender."""
    return kernel in (DISPATCH, STRICT)


class HostSession:
    """Operands in host memory, kernels on the CPU."""

    def __init__(self, problem: Problem, operands: Operands, precision: str = "accurate") -> None:
        self.problem, self.operands, self.precision = problem, operands, precision
        self.out = operands.make_out().array

    def ours(self, kernel: str) -> Contender:
        problem, a, out = self.problem, self.operands.a, self.out
        b: Any = self.operands.b
        name = None if dispatched(kernel) else kernel
        precision: Any = STRICT if kernel == STRICT else self.precision
        if problem.op == "sgemm":
            trans_a, trans_b = problem.trans_a, problem.trans_b

            def ssyrk() -> object:
                return fl.ssyrk(a, trans=trans_a, out=out, kernel=name, precision=precision, device="cpu")

            def sgemm() -> object:  # no **arguments: unpacking them takes half a microsecond
                return fl.sgemm(
                    a, b, trans_a=trans_a, trans_b=trans_b, out=out, kernel=name, precision=precision, device="cpu"
                )

            return Contender(kernel, ssyrk if problem.own else sgemm)
        if problem.op == "sgemv":
            return Contender(kernel, lambda: fl.sgemv(a, b, trans=problem.trans, out=out, kernel=name, device="cpu"))
        return Contender(kernel, lambda: fl.transpose(a, out, kernel=name, device="cpu"))

    def theirs(self, peer: Peer) -> list[Contender]:
        calls = peer.host_calls(self.problem, self.operands.a, self.operands.b, self.out)
        return [Contender(name, call, peer) for name, call in calls.items()]

    def copies(self) -> list[Contender]:
        if self.problem.op != "transpose" or not self.problem.contiguous:
            return []
        source, target = self.operands.a.reshape(-1), self.out.reshape(-1)
        return [Contender(COPY, lambda: np.copyto(target, source))]

    def result(self, contender: Contender) -> Array:
        width = (self.problem.n,) if self.problem.op == "sgemm" else self.out.shape[1:]
        rows, out = self.operands.rows, self.out.reshape(-1, *width)  # a view: a batch has no padding
        out[rows] = np.nan
        contender.call()
        return out[rows]

    def first_us(self, contender: Contender) -> float:
        return min(once(contender.call) for _ in range(4))  # the first warms up; other load only lengthens

    def measure(self, contenders: list[Contender], plan: Plan, note: Callable[[str], None]) -> dict[str, Timing]:
        note(f"{len(contenders)} contenders in turn")
        pools = fl.get_num_threads() > 1 and any(c.peer for c in contenders)
        return alternating({c.name: c.call for c in contenders}, plan, AMONG_THREADS if pools else Quiet())


class DeviceSession:
    """Operands in device memory, row-major."""

    def __init__(self, problem: Problem, operands: Operands, precision: str = "accurate", device: int = 0) -> None:
        self.problem, self.operands, self.precision, self.device = problem, operands, precision, device
        self.a = self._upload(operands.placed_a)
        own_b = None if operands.placed_b is None or problem.own else self._upload(operands.placed_b)
        self.b = self.a if problem.own else own_b
        self.out = self._upload(operands.make_out())

    def _upload(self, operand: Placed) -> DeviceOperand:
        buffer = _core.DeviceBuffer(operand.flat.nbytes, self.device)
        buffer.upload(operand.flat)
        return DeviceOperand(buffer, operand.offset, operand.ld, operand.array.shape)

    def ours(self, kernel: str) -> Contender:
        p, name = self.problem, None if dispatched(kernel) else kernel
        precision: Any = STRICT if kernel == STRICT else self.precision
        operands: tuple[Any, ...] = (self.a,) if self.b is None else (self.a, self.b)
        options: dict[str, Any] = {
            "sgemm": {"trans_a": p.trans_a, "trans_b": p.trans_b, "precision": precision},
            "sgemv": {"trans": p.trans},
            "transpose": {},
        }[p.op]
        function = getattr(fl, p.op)  # without a stream on the library's own, which downloads follow
        return Contender(
            kernel, lambda stream: function(*operands, **options, out=self.out, kernel=name, stream=stream or None)
        )

    def theirs(self, peer: Any) -> list[Contender]:
        calls = peer.device_calls(self.problem, self.a, self.b, self.out)
        return [Contender(name, call, peer) for name, call in calls.items()]

    def copies(self) -> list[Contender]:
        return []  # the peers bring theirs

    def result(self, contender: Contender) -> Array:
        shape, rows = self.problem.out_shape(), self.operands.rows
        if len(shape) == 1:  # a vector comes back whole
            return self._rows_after(contender, np.zeros(1, np.int64), shape[0])[0][rows]
        return self._rows_after(contender, rows, shape[-1])

    def _rows_after(self, contender: Contender, rows: Array, length: int) -> Array:
        places = [4 * (self.out.offset + self.out.ld * int(row)) for row in rows]
        for place in places:
            self.out.buffer.upload(canaries(length), offset=place)
        self._run(contender)
        got = np.empty((len(rows), length), np.float32)
        for row, place in zip(got, places, strict=True):
            self.out.buffer.download(row, offset=place)
        return got

    def _run(self, contender: Contender) -> None:
        if isinstance(contender.peer, DevicePeer):
            contender.call(contender.peer.stream())
            contender.peer.synchronize()
        elif contender.ours:
            contender.call(0)
        else:
            _core.time_in_graph(contender.call, 1, 1, self.device)

    def first_us(self, contender: Contender) -> float:
        if isinstance(contender.peer, DevicePeer):
            return contender.peer.loop(contender.call, 1, 1)[0]
        return float(_core.time_in_graph(contender.call, 1, 1, self.device)[0])

    def measure(self, contenders: list[Contender], plan: Plan, note: Callable[[str], None]) -> dict[str, Timing]:
        """By turns if there is something to compare with, each with the clocks of its turns."""
        named = {contender.name: contender for contender in contenders}
        sides = [name for name, contender in named.items() if contender.reference or dispatched(name)]
        rounds = min(ROUNDS, plan.repeats) if any(contender.reference for contender in contenders) else 1
        share = replace(plan, repeats=plan.repeats // rounds, budget_us=plan.budget_us / rounds)

        def turn(name: str) -> Timing:
            note(name)
            with watched() as seen:
                timing = self._time(named[name], share)
            return replace(timing, clocks=seen or None)

        return by_turns(list(named), sides, rounds, turn)

    def _time(self, contender: Contender, plan: Plan) -> Timing:
        def graph(call: Callable[[int], object], launches: int, replays: int) -> list[float]:
            return list(_core.time_in_graph(call, launches, replays, self.device))

        try:
            return Timing(in_graph(contender.call, plan, graph), "cuda graph")
        except Exception:  # whatever a peer's library raises when it cannot be captured: time plain launches instead
            if not isinstance(contender.peer, DevicePeer):
                raise
            contender.peer.synchronize()
            return Timing(in_graph(contender.call, plan, contender.peer.loop), "loop")


Session = HostSession | DeviceSession  # one problem with its operands in place
