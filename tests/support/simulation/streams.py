"""What tests ask of the simulated device (../../simulated/control.cpp)."""

from __future__ import annotations


def capture(device, stream, calls):
    device.simulated_synchronize()
    assert device.simulated_begin_capture(stream) == 0
    try:
        calls()
    finally:
        graph = device.simulated_end_capture(stream)
    return graph


class Unordered:
    """A device array of a library whose streams nobody knows."""

    def __init__(self, x):
        self.owner = x

    @property
    def __cuda_array_interface__(self):
        return self.owner.__cuda_array_interface__ | {"stream": None}
