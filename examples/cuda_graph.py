"""A CUDA graph of fastlinalg calls, built with cuda.core: a step of a linear network, launched as one piece.

Each launch computes y = W2 (W1 x + b1) + b2 for a batch of columns x. The operands are filled again between launches:
the graph has their addresses. Every result is checked against NumPy.

Run: python examples/cuda_graph.py   (needs a CUDA device and cuda.core: pip install cuda-core cuda-bindings)
"""

from __future__ import annotations

import sys
import time

import numpy as np

import fastlinalg as fl

WIDTH, BATCH, LAUNCHES = 512, 64, 200


def main() -> int:
    if not fl.cuda.is_available():
        print(f"no CUDA device: {fl.info()['cuda']['message']}")
        return 0
    try:
        from cuda.core import Device
    except ImportError:
        print("cuda.core is missing: pip install cuda-core cuda-bindings")
        return 0

    rng = np.random.default_rng(0)
    host = {name: rng.standard_normal((WIDTH, WIDTH), dtype=np.float32) / WIDTH**0.5 for name in ("w1", "w2")}
    host |= {name: rng.standard_normal((WIDTH, BATCH), dtype=np.float32) for name in ("x", "b1", "b2")}
    on_device = {name: fl.DeviceArray.from_numpy(array) for name, array in host.items()}
    hidden, y = (fl.DeviceArray.from_numpy(np.zeros((WIDTH, BATCH), np.float32)) for _ in range(2))

    device = Device(0)
    device.set_current()
    stream = device.create_stream()

    def layers(on) -> None:
        fl.sgemm(on_device["w1"], on_device["x"], on_device["b1"], beta=1.0, out=hidden, stream=on)
        fl.sgemm(on_device["w2"], hidden, on_device["b2"], beta=1.0, out=y, stream=on)

    layers(stream)  # warm: workspaces are in the pool, kernels are loaded
    builder = stream.create_graph_builder()
    builder.begin_building()
    layers(builder)
    graph = builder.end_building().complete()

    for _ in range(3):
        x = rng.standard_normal((WIDTH, BATCH), dtype=np.float32)
        fl.transpose(fl.DeviceArray.from_numpy(x.T), out=on_device["x"]).numpy()  # waits: the graph may start
        graph.launch(stream)
        stream.sync()
        want = host["w2"] @ (host["w1"] @ x + host["b1"]) + host["b2"]
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-3, atol=1e-3)

    for name, launch in (("calls", lambda: layers(stream)), ("graph", lambda: graph.launch(stream))):
        stream.sync()
        start = time.perf_counter()
        for _ in range(LAUNCHES):
            launch()
        queued = time.perf_counter()
        stream.sync()
        print(
            f"{name}: {(queued - start) / LAUNCHES * 1e6:.1f} us to queue, "
            f"{(time.perf_counter() - start) / LAUNCHES * 1e6:.1f} us in all, each step"
        )
    print("results agree with NumPy")
    return 0


if __name__ == "__main__":
    sys.exit(main())
