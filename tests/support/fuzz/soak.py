"""A soak (tools/fuzz): threads that make random calls and plans, change limits, trim, fork, start threads and provoke
errors, and what is measured meanwhile."""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import itertools
import os
import statistics
import threading
import time
import warnings

import numpy as np

import fastlinalg as fl
from support.fuzz import random_calls
from support.programs import resident
from support.threads import in_threads


class Soak:
    """What threads do, what they count, and the answers that have to stay."""

    FIXED = 24  # cases that repeat

    def __init__(self, device: str, seed: int) -> None:
        self.device, self.seed = device, seed
        self.numbers = itertools.count()
        self.done: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []
        self.stop, self.forking = threading.Event(), threading.Lock()
        self.threads: list[threading.Thread] = []
        self.before = 0, time.process_time()
        self.answers = [self.answer(self.fixed(i)) for i in range(self.FIXED)]

    def fixed(self, i: int):
        draws = random_calls.Draws(self.seed, i)
        return random_calls.draw_case(draws, self.device)

    def answer(self, case) -> bytes:
        with contextlib.suppress(ValueError):  # a kernel that does not take such operands
            return random_calls.run(case).tobytes()
        return b""

    # What can be done, each by its name:
    def do_random(self, draws) -> None:
        random_calls.check(draws, self.device)

    def do_again(self, draws) -> None:
        i = draws.between(0, self.FIXED - 1)
        case = self.fixed(i)
        assert self.answer(case) == self.answers[i], f"{case}: other bits than at the start"

    def do_plans(self, draws) -> None:
        n = draws.between(1, 300)
        a, b = (random_calls.numbers(draws.rng, "integers", (n, n)) for _ in range(2))
        want = a.astype(float) @ b
        if self.device == "cuda" and draws.between(0, 1):
            a, b = (fl.DeviceArray.from_numpy(x) for x in (a, b))
        plan = fl.Matmul(a, b, device=self.device, constant=draws.one_of((None, "a", "b")))
        for _ in range(draws.between(1, 12)):
            got = plan.execute()
            assert np.array_equal(got if isinstance(got, np.ndarray) else got.numpy(), want), f"a plan of {n}"
        if draws.between(0, 1):
            plan.free()

    def do_limits(self, draws) -> None:
        fl.set_num_threads(draws.between(1, 12))
        fl.cuda.set_memory_limit(draws.one_of((None, "2 GiB", "4 GiB")))

    def do_trim(self, draws) -> None:
        fl.cuda.trim()

    def do_large(self, draws) -> None:
        n = draws.between(1500, 3500)
        column = np.arange(n, dtype=np.float32)[:, None]
        got = fl.matmul(column, np.ones((1, n), np.float32), device=self.device)
        assert (got[::97] == column[::97]).all(), f"a large result of {n}"

    def do_thread(self, draws) -> None:
        in_threads(self.do_again, [draws])

    def do_fork(self, draws) -> None:
        a = np.ones((draws.between(1, 300), 40), np.float32)
        with self.forking, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
            if child == 0:
                faulthandler.dump_traceback_later(60, exit=True)
                os._exit(0 if (fl.matmul(a, a.T, device="cpu") == 40).all() else 3)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == 0, f"a child of fork ended with {status}"

    def do_errors(self, draws) -> None:
        a, device = np.ones((3, 4), np.float32), self.device
        fixed = np.ones((3, 3), np.float32)
        fixed.flags.writeable = False
        wrong = (
            (ValueError, lambda: fl.matmul(a, a, device=device)),
            (TypeError, lambda: fl.matmul(a, a.T.astype(float), device=device)),
            (ValueError, lambda: fl.matmul(a, a.T, out=fixed, device=device)),
            (ValueError, lambda: fl.sgemm(a, a.T, kernel="none", device=device)),
            (ValueError, lambda: fl.sgemv(a, a[0, :3], device=device)),
            (ValueError, lambda: fl.Matmul(a, a, device=device)),
            (MemoryError, lambda: fl.matmul(np.broadcast_to(a[:1, :1], (2**24, 1)), np.ones((1, 2**22), np.float32),
                                            device="cpu")),
        )  # fmt: skip
        error, call = draws.one_of(wrong)
        try:
            call()
        except error:
            return
        raise AssertionError(f"no {error.__name__}")

    OFTEN = ("again",) * 12 + ("random",) * 12 + ("plans",) * 4 + ("errors",) * 4
    ACTIONS = (*OFTEN, "limits", "trim", "large", "thread", "fork")

    def work(self) -> None:
        while not self.stop.is_set():
            draws = random_calls.Draws(self.seed, next(self.numbers))
            name = draws.one_of(self.ACTIONS)
            try:
                getattr(self, f"do_{name}")(draws)
            except Exception as error:
                self.failures.append(f"{name}: {type(error).__name__}: {error}")
            self.done[name] += 1

    def begin(self, threads: int) -> None:
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def end(self, seconds: float) -> int:
        """How many threads have not ended after that."""
        self.stop.set()
        for thread in self.threads:
            thread.join(seconds)
        return sum(thread.is_alive() for thread in self.threads)

    def sample(self, seconds: float) -> dict[str, float]:
        a, times = np.ones((200, 200), np.float32), []
        for _ in range(15):
            begin = time.perf_counter()
            fl.matmul(a, a, device=self.device)
            times.append(time.perf_counter() - begin)
        actions, cpu = sum(self.done.values()), time.process_time()
        cpu_ms = 1e3 * (cpu - self.before[1]) / max(actions - self.before[0], 1)
        self.before = actions, cpu
        memory = fl.cuda.memory_info() if self.device == "cuda" else {}
        return {
            "s": round(seconds, 1),
            "actions": actions,
            "failures": len(self.failures),
            "rss_mib": resident() / 2**20,
            **{f"{name}_mib": round(memory[name] / 2**20, 1) for name in ("used", "reserved", "pinned") if memory},
            **({"device_mib": (memory["total"] - memory["free"]) / 2**20} if memory else {}),
            "threads": len(os.listdir("/proc/self/task")),
            "files": len(os.listdir("/proc/self/fd")),
            "call_us": round(1e6 * statistics.median(times), 1),
            "cpu_ms": round(cpu_ms, 3),  # of an action, however busy the machine is
        }
