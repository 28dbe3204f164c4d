"""What is compared on one problem, and the two places where it can run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import fastlinalg as fl

from .. import _core
from .._check import Array, canaries
from .operands import Operands
from .peers import COPY, DevicePeer, Peer
from .problems import Problem
from .timing import Plan, Timing, alternating, in_graph, once

DISPATCH = "dispatch"  # the contender that leaves the choice of kernel to the library


@dataclass(frozen=True)
class Contender:
    """A kernel of ours, what a peer offers for the same problem, or a copy of what a transpose moves."""

    name: str
    call: Callable[..., object]
    peer: Peer | None = None

    @property
    def is_copy(self) -> bool:
        return self.name == COPY

    @property
    def ours(self) -> bool:
        return self.peer is None and not self.is_copy


class Session(Protocol):
    """One problem with its operands in place."""

    def ours(self, kernel: str) -> Contender: ...
    def theirs(self, peer: Any) -> list[Contender]: ...
    def copies(self) -> list[Contender]: ...
    def result(self, contender: Contender) -> Array: ...
    def first_us(self, contender: Contender) -> float: ...
    def measure(self, contenders: list[Contender], plan: Plan, note: Callable[[str], None]) -> dict[str, Timing]: ...


class HostSession:
    """Operands in host memory, kernels on the CPU."""

    def __init__(self, problem: Problem, operands: Operands) -> None:
        self.problem, self.operands = problem, operands
        self.out = np.zeros(problem.out_shape(), np.float32)  # zeros: touches every page before a clock runs

    def ours(self, kernel: str) -> Contender:
        problem, a, out = self.problem, self.operands.a, self.out
        b: Any = self.operands.b
        name = None if kernel == DISPATCH else kernel
        if problem.op == "sgemm":
            return Contender(kernel, lambda: fl.sgemm(a, b, out=out, kernel=name, device="cpu"))
        if problem.op == "sgemv":
            return Contender(kernel, lambda: fl.sgemv(a, b, trans=problem.trans, out=out, kernel=name, device="cpu"))
        return Contender(kernel, lambda: fl.transpose(a, out, kernel=name, device="cpu"))

    def theirs(self, peer: Peer) -> list[Contender]:
        calls = peer.host_calls(self.problem, self.operands.a, self.operands.b, self.out)
        return [Contender(name, call, peer) for name, call in calls.items()]

    def copies(self) -> list[Contender]:
        if self.problem.op != "transpose":
            return []
        source, target = self.operands.a.ravel(), self.out.reshape(-1)
        return [Contender(COPY, lambda: np.copyto(target, source))]

    def result(self, contender: Contender) -> Array:
        rows = self.operands.rows
        self.out[rows] = np.nan
        contender.call()
        return self.out[rows]

    def first_us(self, contender: Contender) -> float:
        return min(once(contender.call) for _ in range(4))  # the first warms up; other load only lengthens

    def measure(self, contenders: list[Contender], plan: Plan, note: Callable[[str], None]) -> dict[str, Timing]:
        note(f"{len(contenders)} contenders in turn")
        return alternating({c.name: c.call for c in contenders}, plan)


class DeviceSession:
    """Operands in device memory, row-major with the rows next to each other."""

    def __init__(self, problem: Problem, operands: Operands, device: int = 0) -> None:
        self.problem, self.operands, self.device = problem, operands, device
        self.a = self._upload(operands.a)
        self.b = None if operands.b is None else self._upload(operands.b)
        self.out = _core.DeviceBuffer(4 * int(np.prod(problem.out_shape())), device)

    def _upload(self, array: Array) -> Any:
        buffer = _core.DeviceBuffer(array.nbytes, self.device)
        buffer.upload(array)
        return buffer

    def ours(self, kernel: str) -> Contender:
        p, a, out, device = self.problem, self.a.ptr, self.out.ptr, self.device
        b = self.b.ptr if self.b else 0
        name = None if kernel == DISPATCH else kernel

        def sgemm(stream: int) -> None:
            _core.device_sgemm(
                name,
                p.m,
                p.n,
                p.k,
                1.0,
                a,
                p.k,
                1,
                b,
                p.n,
                1,
                0.0,
                out,
                p.n,
                precision="accurate",
                device=device,
                stream=stream,
            )

        def sgemv(stream: int) -> None:
            m, n, rs, cs = (p.n, p.m, 1, p.n) if p.trans else (p.m, p.n, p.n, 1)
            _core.device_sgemv(name, m, n, 1.0, a, rs, cs, b, 1, 0.0, out, 1, device=device, stream=stream)

        def transpose(stream: int) -> None:
            _core.device_transpose(name, p.m, p.n, a, p.n, out, p.m, device=device, stream=stream)

        return Contender(kernel, {"sgemm": sgemm, "sgemv": sgemv, "transpose": transpose}[p.op])

    def theirs(self, peer: DevicePeer) -> list[Contender]:
        calls = peer.device_calls(self.problem, self.a.ptr, self.b.ptr if self.b else None, self.out.ptr)
        return [Contender(name, call, peer) for name, call in calls.items()]

    def copies(self) -> list[Contender]:
        return []  # the peers bring theirs

    def result(self, contender: Contender) -> Array:
        shape = self.problem.out_shape()
        width = int(np.prod(shape[1:]))
        rows = self.operands.rows if len(shape) > 1 else range(1)  # a vector comes back whole
        length = width if len(shape) > 1 else shape[0]
        for row in rows:
            self.out.upload(canaries(length), offset=4 * length * int(row))
        self._run(contender)
        got = np.empty((len(rows), length), np.float32)
        for i, row in enumerate(rows):
            self.out.download(got[i], offset=4 * length * int(row))
        return got if len(shape) > 1 else got[0][self.operands.rows]

    def _run(self, contender: Contender) -> None:
        if isinstance(contender.peer, DevicePeer):
            contender.call(contender.peer.stream())
            contender.peer.synchronize()
        else:
            contender.call(0)  # the library's own stream, which downloads follow

    def first_us(self, contender: Contender) -> float:
        if isinstance(contender.peer, DevicePeer):
            return contender.peer.loop(contender.call, 1, 1)[0]
        return float(_core.time_in_graph(contender.call, 1, 1, self.device)[0])

    def measure(self, contenders: list[Contender], plan: Plan, note: Callable[[str], None]) -> dict[str, Timing]:
        timings = {}
        for contender in contenders:
            note(contender.name)
            timings[contender.name] = self._time(contender, plan)
        return timings

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
