"""Each call of the CUDA runtime ("calls"), or each request of the library for memory, pages or a thread of the host
("requests"), fails once, and with all that follow it, on the paths named in the arguments.

For every n a forked child makes the n-th call fail, from the state of a process that has not used the device: what it
raises is the error of the runtime, or nothing and the result is right. Then nothing writes the result any more, calls
are right again, and what is left behind is what a process has that saw no failure. Run by test_failing_calls.py.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import json
import os
import signal
import sys
import traceback

import numpy as np

import fastlinalg as fl
from fastlinalg import _core
from support.weights import Named, queue_product

ERRORS = {"memory": (2, "cudaErrorMemoryAllocation"), "device": (214, "cudaErrorECCUncorrectable"), "host": (999, "")}
STATE = ["bytes", "pinned", "pools", "streams", "events", "graphs", "captures", "device", "mode"]
HANDLES = "pools", "streams", "events", "graphs"
NEVER, SECONDS = 2**40, 60
F32 = np.float32
put = fl.DeviceArray.from_numpy


# ---------------------------------------------------------------- paths: what a call did, and what it should have
def numbers(*shape, seed=0):
    """Whole ones, so that every kernel has the same sums."""
    return np.random.default_rng([seed, *shape]).integers(-3, 4, shape).astype(F32)


def host(m, k, n, limit=0, device="cuda"):
    a, b, c = numbers(m, k), numbers(k, n, seed=1), numbers(m, n, seed=2)
    out, want = np.empty_like(c), a @ b + 2 * c

    def call():
        for each in range(len(fl.devices())):
            fl.cuda.set_memory_limit(limit, each)
        out[:] = c
        fl.sgemm(a, b, out, beta=2.0, out=out, device=device)
        yield out, want

    return call, out


def small_calls():
    a, x, square = numbers(50, 70), numbers(70, seed=1), numbers(60, 60)

    def call():
        yield fl.sgemv(a, x, device="cuda"), a @ x
        yield fl.matmul(a, a.T.astype(np.float64), dtype=F32, device="cuda"), a @ a.T
        yield fl.transpose(a, device="cuda"), a.T
        yield fl.ssyrk(square, uplo="L", device="cuda"), np.tril(square @ square.T)

    return call, None


def other_operations():
    a, x = numbers(700, 600), numbers(600, seed=1)
    product, column = a[:, :90] @ a[:, :90].T, a @ x

    def call():
        yield fl.sgemv(a, x, device="cuda"), column
        yield fl.transpose(a, device="cuda"), a.T
        yield fl.matmul(a[:, :90], a[:, :90].T, device="cuda"), product
        yield fl.matmul(a.astype(np.int16), x, dtype=F32, device="cuda"), column

    return call, None


class EverySecond:
    """Rows and columns of a device array, which no kernel takes as they lie."""

    def __init__(self, x):
        shape, strides = tuple(n // 2 for n in x.shape), tuple(2 * stride for stride in x.strides)
        self.__cuda_array_interface__ = x.__cuda_array_interface__ | {"shape": shape, "strides": strides}
        self.owner = x


def device_arrays():
    a, b = numbers(60, 60), numbers(60, 60, seed=1)

    def call():
        x, y = put(a), put(b)
        out = fl.matmul(x, y)
        yield out.numpy(), a @ b
        fl.sgemm(x, y, out, kernel="fp16x2", beta=1.0, out=out)
        yield out.numpy(), 2 * (a @ b)
        fl.sgemm(EverySecond(x), EverySecond(y), out=(part := put(b[:30, :30])))
        yield part.numpy(), a[::2, ::2] @ b[::2, ::2]
        yield fl.ssyrk(x, y, beta=1.0, uplo="U").numpy(), np.triu(a @ a.T + b)
        yield fl.transpose(x, out=x).numpy(), a.T
        yield fl.sgemv(x, put(b[0])).numpy(), a.T @ b[0]

    return call, None


def streams():
    a, b = numbers(40, 40), numbers(40, 40, seed=1)
    mine = []

    def call():
        mine.extend(control.simulated_stream() for _ in range(2 - len(mine)))
        x, y = put(a), put(b)
        for stream in (*mine, 1, 2):
            x = fl.matmul(x, y, stream=stream)
            y = fl.transpose(y, stream=mine[0])
        want, factor = a, b
        for _ in range(4):
            want, factor = want @ factor, factor.T
        yield x.numpy() / F32(2**20), (want / F32(2**20)).astype(F32)

    return call, None


def captures():
    a, b = numbers(40, 40), numbers(40, 40, seed=1)
    mine = []

    def call():
        if not mine:
            mine.append(control.simulated_stream())
        x, y, out = put(a), put(b), put(b)
        graph = None
        control.simulated_synchronize()
        control.simulated_begin_capture(mine[0])
        try:
            fl.matmul(x, y, out=out, stream=mine[0])
        finally:
            graph = control.simulated_end_capture(mine[0])
            control.simulated_launch(graph, mine[0])
            control.simulated_synchronize()
            control.simulated_destroy_graph(graph)
        yield out.numpy(), a @ b

    return call, None


def repeated_calls():
    a, b = numbers(24, 24), numbers(24, 24, seed=1)

    def call():
        x, y, out, planned = put(a), put(b), put(a), put(a)
        with fl.Matmul(x, y, out=planned) as plan:
            for _ in range(7):
                fl.matmul(x, y, out=out)
                plan.execute()
            yield out.numpy(), a @ b
            yield planned.numpy(), a @ b
        fl.cuda.trim()

    return call, None


def plans():
    a, b = numbers(300, 330), numbers(330, 310, seed=1)
    want = a @ b

    def call():
        with fl.Matmul(a, b, device="cuda") as plan:
            for _ in range(2):
                yield plan.execute(), want
        x, y = put(a), put(b)
        with fl.Matmul(x, y, kernel="fp16x2", constant="b") as plan:
            for _ in range(2):
                yield plan.execute().numpy(), want
            plan.reset_operands(a=put(2 * a))
            yield plan.execute().numpy(), 2 * want

    return call, None


def lists():
    """In workspaces on several streams, in parts, and in a graph of them."""
    a, b = [numbers(n, 200) for n in (200, 90, 20)], numbers(200, 150, seed=1)
    products, every_second = [v @ b for v in a], b[::2, ::2] @ b[::2, ::2].T

    def call():
        x, y = [put(v) for v in a], put(b)
        got = fl.grouped_matmul([*x * 21, EverySecond(y)], [*[y] * 63, put(np.ascontiguousarray(b[::2, ::2].T))])
        yield from zip((z.numpy() for z in got), (*products * 21, every_second), strict=True)
        out = [put(np.zeros((len(v), 150), F32)) for v in a]
        with fl.GroupedMatmul(x, [y] * 3, out=out) as plan:
            for _ in range(5):
                plan()
        yield from zip((z.numpy() for z in out), products, strict=True)
        for _ in range(5):
            fl.grouped_matmul(x, [y] * 3, out)
        yield from zip((z.numpy() for z in out), products, strict=True)

    return call, None


def kept_splits():
    a, b = numbers(128, 128), numbers(128, 128, seed=1)
    want = a @ b

    def call():
        x, y, out = put(a), put(b), put(a)
        weights = Named(y)
        try:
            for _ in range(3):
                queue_product(weights, x, y, out)
            control.simulated_synchronize()
            yield out.numpy(), want
            assert fl.matmul(a, b, device="cuda").any()
        finally:
            control.simulated_synchronize()
            weights.clear()

    return call, None


def in_parts():
    """Of matrices on two devices."""
    a, b = numbers(60, 50), numbers(50, 40, seed=1)

    def call():
        x, y = ([put(z[:cut], "cuda:0"), put(z[cut:], "cuda:1")] for z, cut in ((a, 20), (b, 30)))
        got = fl.matmul(x, y)
        yield np.concatenate([part.numpy() for part in got]), a @ b

    return call, None


def measuring():
    """What benchmarks and tests ask of the device."""
    a = numbers(64, 64)

    def call():
        buffer, out = _core.DeviceBuffer(a.nbytes), np.zeros_like(a)
        buffer.upload(a)
        buffer.download(out)
        yield out, a
        _core.time_in_graph(lambda stream: None, 1, 1)
        _core.time_link(1 << 12, 1 << 12, 1)

    return call, None


BOTH = ["cuda:0", "cuda:1"]
PATHS = {
    "small calls": small_calls,
    "one copy": lambda: host(60, 50, 40),
    "panels": lambda: host(400, 420, 430),
    "panels of threads": lambda: host(400, 420, 430),
    "tiles": lambda: host(300, 100, 310, limit=1 << 19),
    "other operations": other_operations,
    "device arrays": device_arrays,
    "streams": streams,
    "captures": captures,
    "repeated calls": repeated_calls,
    "plans": plans,
    "lists": lists,
    "kept splits": kept_splits,
    "measuring": measuring,
    "two devices": lambda: host(1200, 300, 310, device=BOTH),
    "tiles of two devices": lambda: host(500, 100, 310, limit=1 << 19, device=BOTH),
    "in parts": in_parts,
}


# ---------------------------------------------------------------- one child
def state():
    """What is there when nobody uses it any more."""
    gc.collect()  # an error that was caught has the arrays of its frames
    for each in range(len(fl.devices())):
        fl.cuda.set_memory_limit(0, each)
        fl.cuda.trim(each)
    control.simulated_synchronize()
    now = (ctypes.c_long * len(STATE))()
    control.simulated_state(now)
    used = [fl.cuda.memory_info(each)["used"] for each in range(len(fl.devices()))]
    return dict(zip(STATE, now, strict=True)) | {"used": used}


def check(call):
    for got, want in call():
        assert np.array_equal(got, want), f"a wrong result: {np.argwhere(got != want)[:3]} of {got.shape}"


def try_once(call, out, error):
    """The error that the call raised, or None."""
    code, name = ERRORS[error]
    try:
        check(call)
        return None
    except MemoryError as problem:
        assert error != "device", f"MemoryError: {problem}"
        said = problem
    except fl.CudaError as problem:
        assert (problem.code, problem.name) == (code, name) and name in str(problem), f"{problem.name}: {problem}"
        said = problem
    if out is not None:
        before = out.copy()
        control.simulated_synchronize()
        assert np.array_equal(before, out, equal_nan=True), "the result was written when its call had failed"
    return str(said)


def fail(call, out, first, last, error, times=1):
    control.simulated_fail_calls(first, last, ERRORS[error][0])
    said = [try_once(call, out, error) for _ in range(times)]
    failed = control.simulated_failed_call().decode()
    control.simulated_fail_calls(0, 0, 0)
    return said, failed


def child(path, made, first, last, error):
    """What is left, and whether some call has failed."""
    signal.alarm(SECONDS)
    fl.set_num_threads(3 if "threads" in path else 1)
    fl.devices()
    call, out = made
    said, failed = fail(call, out, first, last, error, times=2)
    if error == "memory" and first == last and failed.startswith("cudaGraph") and path != "measuring":
        assert said == [None, None], f"a graph only saves time: {said}"
    check(call)
    left = state()
    if failed:  # the same again leaves no more behind, once all threads have what they keep for later calls
        counts = []
        while len(counts) < 2 or counts[-1] != counts[-2]:
            assert len(counts) < 8, f"{HANDLES} are lost: {counts}"
            fail(call, out, first, last, error)
            left = state()
            counts.append([left[name] for name in HANDLES])
        check(call)
    return {"failed": failed, "left": left}


def in_child(*arguments):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = child(*arguments)
        except BaseException:
            answer = {"failed": control.simulated_failed_call().decode(), "wrong": traceback.format_exc()}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, how = os.waitpid(pid, 0)
    return json.loads(text) if text and how == 0 else {"wrong": f"the process ended with {how}", "failed": "?"}


def differences(left, usual):
    return {name: (left[name], usual[name]) for name in usual if left[name] != usual[name] and name not in HANDLES}


def main(what, every, *paths):
    faults, calls, places = 0, 0, set()
    errors = ["host"] if what == "requests" else ["memory", "device"]
    for path in paths:
        made = PATHS[path]()
        gc.collect()
        gc.freeze()  # what there is now need not be looked at by each child
        usual = in_child(path, made, NEVER, NEVER, "device")
        assert "wrong" not in usual, usual["wrong"]
        for error, last in itertools.product(errors, (0, NEVER)):
            first = 1
            while first < 500:  # what is measured is repeated for some milliseconds
                answer = in_child(path, made, first, last or first, error)
                if "wrong" not in answer and not answer["failed"]:
                    break
                calls += 1
                places.add(answer["failed"])
                wrong = answer.get("wrong") or differences(answer["left"], usual["left"])
                if wrong:
                    faults += 1
                    print(f"{path}, {error}, call {first} of {last or first}: {answer['failed']}\n{wrong}")
                first += int(every)
    print(f"{calls} failures of {len(places)} calls, {faults} faults")
    return faults > 0


if __name__ == "__main__":
    control = ctypes.CDLL(os.path.join(os.environ["LD_LIBRARY_PATH"], "libfastlinalg.so.0.1"))
    control.simulated_stream.restype = control.simulated_end_capture.restype = ctypes.c_void_p
    control.simulated_failed_call.restype = ctypes.c_char_p
    for name in ("begin_capture", "end_capture", "destroy_graph"):
        getattr(control, f"simulated_{name}").argtypes = [ctypes.c_void_p]
    control.simulated_launch.argtypes = [ctypes.c_void_p] * 2
    control.simulated_fail_calls.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_int]
    sys.exit(main(*sys.argv[1:]))
