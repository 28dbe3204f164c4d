"""Calls on device arrays captured into CUDA graphs by other libraries, and replayed."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.device_libraries import captured_while
from support.operands import normal

pytestmark = pytest.mark.gpu
F32 = np.float32


@pytest.mark.parametrize("n", [32, 200, 1024])
@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_torch_graph(n, mode, torch, rng):
    a, b = (torch.zeros((n, n), device="cuda") for _ in range(2))
    product, transposed, vector = torch.empty_like(a), torch.empty_like(a), torch.empty(n, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode=mode):
        fl.matmul(a, b, out=product)
        fl.sgemm(product, b, product, alpha=0.5, beta=1.0, out=product)  # overlap: through a temporary
        fl.transpose(product, out=transposed)
        fl.sgemv(transposed, b[0], out=vector)
        fresh = fl.matmul(a[:, ::2], b[::2])  # packed, into memory of torch's own pool
    for _ in range(3):
        host_a, host_b = normal(rng, n, n) / 8, normal(rng, n, n) / 8
        a.copy_(torch.from_numpy(host_a)), b.copy_(torch.from_numpy(host_b))
        graph.replay()
        first = host_a.astype(np.float64) @ host_b
        want = first + 0.5 * first @ host_b
        np.testing.assert_allclose(product.cpu().numpy(), want, rtol=1e-3, atol=1e-3)
        assert_same_bits(transposed.cpu().numpy(), product.cpu().numpy().T)
        np.testing.assert_allclose(vector.cpu().numpy(), want.T @ host_b[0], rtol=1e-3, atol=1e-2)
        assert_product(fresh.cpu().numpy(), host_a[:, ::2], host_b[::2])


def test_first_call_of_a_process_may_be_captured(python):
    """Streams, pools and tables are then made during the capture."""
    pytest.importorskip("torch")
    python(
        "import torch, fastlinalg as fl\n"
        "a = torch.ones((300, 300), device='cuda'); out = torch.empty_like(a)\n"
        "graph = torch.cuda.CUDAGraph()\n"
        "with torch.cuda.graph(graph):\n"
        "    fl.matmul(a, a, out=out)\n"
        "a.fill_(2.0)\n"
        "graph.replay(); torch.cuda.synchronize()\n"
        "assert (out == 1200.0).all()\n"
    )


def test_host_calls_while_another_thread_captures(torch, rng):
    """A capture in the default mode forbids much to all threads, and is spoilt by it."""
    a = torch.from_numpy(normal(rng, 64, 64)).cuda()
    out = torch.zeros_like(a)

    def work():
        for n in (40, 700, 1500):
            x, y = normal(rng, n, n), normal(rng, n, n)
            assert_product(fl.matmul(x, y, device="cuda"), x, y)
            assert_same_bits(fl.DeviceArray.from_numpy(x).numpy(), x)

    captured_while(work, lambda: fl.matmul(a, a, out=out))
    assert_product(out.cpu().numpy(), a.cpu().numpy(), a.cpu().numpy())


def test_cupy_graph(cupy, rng):
    a, out = cupy.zeros((64, 64), F32), cupy.zeros((64, 64), F32)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        fl.matmul(a, a, out=out)
        graph = stream.end_capture()
    host = normal(rng, 64, 64)
    a[...] = cupy.asarray(host)
    cupy.cuda.Device().synchronize()
    graph.launch(stream)
    stream.synchronize()
    assert_product(cupy.asnumpy(out), host, host)


def build(stream, calls):
    """A graph of cuda.core from the calls that are made with its builder as their stream."""
    builder = stream.create_graph_builder()
    builder.begin_building()
    calls(builder)
    return builder.end_building().complete()


def test_cuda_core_graph(torch, rng):
    """The operands' libraries are in no capture: whoever launches the graph has ordered their work before."""
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    host = normal(rng, 96, 96)
    x = fl.DeviceArray.from_numpy(np.zeros((96, 96), F32))
    y = fl.DeviceArray.from_numpy(np.zeros((96, 96), F32))
    a, b = torch.zeros((96, 96), device="cuda"), torch.zeros((96, 96), device="cuda")

    def calls(builder):
        fl.matmul(a, a, out=b, stream=builder)
        fl.transpose(b, out=b, stream=builder)
        fl.matmul(x, b, out=y, stream=builder)
        fl.matmul(Producer(a), b, out=b, stream=builder)

    graph = build(stream, calls)
    a.copy_(torch.from_numpy(host))
    fl.transpose(fl.DeviceArray.from_numpy(np.eye(96, dtype=F32)), out=x).numpy()
    torch.cuda.synchronize()
    for _ in range(2):
        graph.launch(stream)
        stream.sync()
        square = (host.astype(np.float64) @ host).astype(F32)
        np.testing.assert_allclose(y.numpy(), square.T, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(b.cpu().numpy(), host.astype(np.float64) @ square.T, rtol=1e-4, atol=1e-3)


class Producer:
    """Anything with DLPack: asked for no order while the stream is captured."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **more):
        assert stream == -1
        return self.tensor.__dlpack__(stream=stream, **more)


def test_calls_with_out_allocate_nothing(torch):
    a = torch.ones((64, 64), device="cuda")
    out, transposed, vector = torch.empty_like(a), torch.empty_like(a), torch.empty(64, device="cuda")
    x = fl.DeviceArray.from_numpy(np.ones((64, 64), F32))
    y = fl.DeviceArray.from_numpy(np.ones((64, 64), F32))
    side = torch.cuda.Stream()

    def calls():
        for stream in (None, side):
            fl.matmul(a, a, out=out, stream=stream)
            fl.sgemm(a, a, out, beta=1.0, out=out, stream=stream)
            fl.transpose(a, out=transposed, stream=stream)
            fl.sgemv(a, a[0], out=vector, stream=stream)
            fl.matmul(x, x, out=y, stream=stream)

    calls()
    torch.cuda.synchronize()
    before = fl.cuda.memory_info(), torch.cuda.memory_stats()["allocation.all.allocated"]
    for _ in range(5):
        calls()
    torch.cuda.synchronize()
    after = fl.cuda.memory_info(), torch.cuda.memory_stats()["allocation.all.allocated"]
    assert after[0]["reserved"] == before[0]["reserved"] and after[0]["used"] == before[0]["used"]
    assert after[1] == before[1]
