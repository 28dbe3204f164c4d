"""Streams: a call waits for the producer and the consumer for the call, and nothing waits on the host."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product
from support.device_libraries import CYCLES_PER_MS, Own, as_torch, delay
from support.operands import normal
from support.threads import in_threads

pytestmark = pytest.mark.gpu
F32 = np.float32


class FakeStream:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return (0, self.handle)


def core_stream():
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    return device.create_stream()


STREAMS = {
    "None": lambda torch, cupy: None,
    "legacy": lambda torch, cupy: 1,
    "per thread": lambda torch, cupy: 2,
    "int": lambda torch, cupy: torch.cuda.Stream().cuda_stream,
    "torch": lambda torch, cupy: torch.cuda.Stream(),
    "cupy": lambda torch, cupy: cupy.cuda.Stream(non_blocking=True),
    "cupy, legacy": lambda torch, cupy: cupy.cuda.Stream.null,
    "cuda.core": lambda torch, cupy: core_stream(),
    "protocol": lambda torch, cupy: FakeStream(torch.cuda.Stream().cuda_stream),
    "protocol, legacy": lambda torch, cupy: FakeStream(0),
}


# ---------------------------------------------------------------- order
@pytest.mark.parametrize("name", STREAMS)
def test_torch_producer_and_consumer_are_ordered(name, torch, cupy, rng):
    stream = STREAMS[name](torch, cupy)
    host_a, host_b = normal(rng, 64, 48), normal(rng, 48, 80)
    a, b = torch.zeros(64, 48, device="cuda"), torch.zeros(48, 80, device="cuda")
    late_a, late_b = torch.from_numpy(host_a).cuda(), torch.from_numpy(host_b).cuda()
    out = torch.full((64, 80), float("nan"), device="cuda")
    fl.matmul(late_a, late_b, stream=stream)  # the first call of a process loads kernels: longer than the sleep
    for current in (torch.cuda.default_stream(), torch.cuda.Stream()):
        torch.cuda.synchronize()
        with torch.cuda.stream(current):
            a.zero_(), b.zero_(), out.fill_(float("nan"))
            torch.cuda._sleep(20 * CYCLES_PER_MS)
            a.copy_(late_a), b.copy_(late_b)  # the producer, still to run
            fl.matmul(a, b, out=out, stream=stream)
            fresh = fl.matmul(a, b, stream=stream)
            seen, seen_fresh = out.clone(), fresh.clone()  # the consumer
            a.zero_(), b.zero_()  # and the operands are free again for work queued later
            assert not current.query(), "the call has waited on the host"
        torch.cuda.synchronize()
        assert_product(seen.cpu().numpy(), host_a, host_b)
        assert_product(seen_fresh.cpu().numpy(), host_a, host_b)


@pytest.mark.parametrize("name", STREAMS)
def test_cupy_producer_and_consumer_are_ordered(name, torch, cupy, rng):
    stream = STREAMS[name](torch, cupy)
    host = normal(rng, 64, 64)
    late = cupy.asarray(host)
    a = cupy.zeros((64, 64), F32)
    a[...] = late.copy()  # loads CuPy's kernels, which waits for the device
    a[...] = 0
    fl.matmul(late, late, stream=stream)  # and ours: longer than the delay
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as current:
        delay(torch, current.ptr)
        a[...] = late
        seen = fl.matmul(a, a, stream=stream).copy()
        a[...] = 0
        assert not current.done, "the call has waited on the host"
    cupy.cuda.Device().synchronize()
    assert_product(cupy.asnumpy(seen), host, host)


def test_device_arrays_are_ordered(torch, cupy, rng):
    host = normal(rng, 64, 64)
    x = fl.DeviceArray.from_numpy(host)
    for stream in (None, 1, 2, torch.cuda.Stream()):
        delay(torch, x.stream)
        result = fl.matmul(x, x, stream=stream)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            seen = torch.from_dlpack(result).clone()
        with cupy.cuda.Stream(non_blocking=True):
            seen_by_interface = cupy.asarray(result).copy()
        del result
        torch.cuda.synchronize()
        assert_product(seen.cpu().numpy(), host, host)
        assert_product(cupy.asnumpy(seen_by_interface), host, host)


@pytest.mark.parametrize("stream", [None, 1, 2, "handle"])
def test_consumer_streams_of_dlpack(stream, torch, rng):
    host = normal(rng, 64, 64)
    x = fl.DeviceArray.from_numpy(host)
    delay(torch, x.stream)
    result = fl.matmul(x, x)
    consumer = {None: 1, "handle": torch.cuda.Stream().cuda_stream}.get(stream, stream)
    tensor = torch.utils.dlpack.from_dlpack(result.__dlpack__(stream=consumer if stream else None, max_version=(1, 0)))
    with torch.cuda.stream(as_torch(torch, consumer)):
        seen = tensor.clone()
    torch.cuda.synchronize()
    assert_product(seen.cpu().numpy(), host, host)


def test_zero_is_the_legacy_default_stream(torch, rng):
    """As torch and the CUDA runtime have it."""
    host = normal(rng, 300, 200)
    a = torch.from_numpy(host).cuda()
    stream = torch.cuda.default_stream().cuda_stream
    assert stream == 0
    assert_product(fl.matmul(a, a.T, stream=stream).cpu().numpy(), host, host.T)


INVALID_STREAMS = {"negative": -1, "text": "1", "float": 1.0, "bool": True, "object": object()}


@pytest.mark.parametrize("stream", INVALID_STREAMS.values(), ids=INVALID_STREAMS)
def test_invalid_streams(stream, torch):
    a = torch.ones((2, 2), device="cuda")
    with pytest.raises((TypeError, ValueError), match="stream"):
        fl.matmul(a, a, stream=stream)


def test_any_dlpack_producer_is_told_the_stream(torch, rng):
    class Producer:
        def __init__(self, tensor, versions=True):
            self.tensor, self.versions, self.seen = tensor, versions, []

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, *, stream=None, **more):
            if more and not self.versions:
                raise TypeError("unexpected keyword")
            self.seen.append(stream)
            return self.tensor.__dlpack__(stream=stream, **more)

    host = normal(rng, 64, 64)
    for versions in (True, False):
        for stream in (torch.cuda.Stream(), None):
            a = torch.zeros((64, 64), device="cuda")
            late = torch.from_numpy(host).cuda()
            torch.cuda.synchronize()
            torch.cuda._sleep(20 * CYCLES_PER_MS)
            a.copy_(late)
            producer = Producer(a, versions)
            result = fl.matmul(producer, producer, stream=stream)
            expected = stream.cuda_stream if stream else result.stream
            assert producer.seen == [expected, expected]
            assert type(result) is fl.DeviceArray
            del producer, a  # torch may now give the memory to somebody else; what was exported lives on
            torch.full((64, 64), float("nan"), device="cuda")
            assert_product(result.numpy(), host, host)


# ---------------------------------------------------------------- nothing waits
def test_the_legacy_stream_is_not_used(torch, rng):
    """Work on it is still running while a call on another stream begins and ends."""
    a = torch.from_numpy(normal(rng, 64, 64)).cuda()
    x = fl.DeviceArray.from_numpy(normal(rng, 64, 64))
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        fl.matmul(a, a)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    torch.cuda._sleep(100 * CYCLES_PER_MS)
    with torch.cuda.stream(side):
        fl.matmul(a, a)
    side.synchronize()
    fl.matmul(x, x).numpy()
    assert not torch.cuda.default_stream().query()
    torch.cuda.synchronize()


def test_calls_return_at_once(torch):
    a = torch.ones((64, 64), device="cuda")
    out = torch.empty_like(a)
    stream = torch.cuda.Stream()

    def calls():
        fl.matmul(a, a, out=out)
        fl.matmul(a, a, stream=stream)
        fl.matmul(a, a, out=a)

    calls()  # torch's first allocation on a stream may wait for the device
    torch.cuda.synchronize()
    torch.cuda._sleep(200 * CYCLES_PER_MS)
    start = time.perf_counter()
    calls()
    assert time.perf_counter() - start < 0.05
    assert not torch.cuda.default_stream().query()
    torch.cuda.synchronize()


def test_operands_may_go_right_after_the_call(torch, rng):
    """The memory of a temporary is used again by its library, in the order of its stream."""
    host = normal(rng, 128, 128)
    b = torch.from_numpy(host).cuda()
    side = torch.cuda.Stream()
    results = []
    for _ in range(100):
        a = torch.from_numpy(host).cuda()
        delay(torch, side.cuda_stream, ms=1)
        results.append(fl.matmul(a, b, stream=side))
        del a
        torch.full((128, 128), float("nan"), device="cuda")
    torch.cuda.synchronize()
    for result in results:
        assert_product(result.cpu().numpy(), host, host)


def test_device_arrays_may_go_right_after_the_call(torch, rng):
    host = normal(rng, 128, 128)
    side = torch.cuda.Stream()
    for _ in range(50):
        x = fl.DeviceArray.from_numpy(host)
        delay(torch, side.cuda_stream, ms=1)
        y = fl.matmul(x, x, stream=side)
        del x
        z = fl.DeviceArray.from_numpy(np.full((128, 128), np.nan, F32))
        assert_product(y.numpy(), host, host)
        del y, z
    gc.collect()


def test_threads_on_their_own_streams(torch, rng):
    hosts = [normal(rng, 32 + 8 * i, 32 + 8 * i) for i in range(8)]

    def work(host):
        with torch.cuda.stream(torch.cuda.Stream()):
            a = torch.from_numpy(host).cuda()
            out = torch.empty_like(a)
            for i in range(200):
                fl.matmul(a, a, out=out, stream=torch.cuda.Stream() if i % 10 == 0 else None)
            assert_product(out.cpu().numpy(), host, host)
            own = Own()
            assert_product(own.get(fl.matmul(own.put(host), own.put(host))), host, host)

    in_threads(work, hosts)


@pytest.mark.gpu2
def test_second_device(torch, cupy, rng):
    host = normal(rng, 40, 40)
    a = torch.from_numpy(host).to("cuda:1")
    with cupy.cuda.Device(1):
        x = cupy.asarray(host)
    before = cupy.cuda.Device().id  # not always 0: torch leaves another device current while 0 has no context
    result, other = fl.matmul(a, a), fl.matmul(x, x)
    assert result.device.index == 1 and other.device.id == 1
    assert torch.cuda.current_device() == 0 and cupy.cuda.Device().id == before
    assert_product(result.cpu().numpy(), host, host)
    assert_product(cupy.asnumpy(other), host, host)
    y = fl.DeviceArray.from_numpy(host, device="cuda:1")
    assert_product(fl.matmul(y, y).numpy(), host, host)
    with pytest.raises(ValueError, match=r"cuda:1.*cuda:0|cuda:0.*cuda:1"):
        fl.matmul(a, a.to("cuda:0"))
    with pytest.raises(ValueError, match="cuda:0"):
        fl.matmul(a, a, device="cuda:0")
