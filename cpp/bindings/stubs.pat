# What the stub generator cannot see in the extension module (nanobind_add_stub, PATTERN_FILE).

# Attributes that are not functions or classes of the module's own.
_core.__prefix__:
    \from typing import Any
    __version__: str

    class CudaError(RuntimeError):
        code: int
        name: str

# The result is an array that only the public functions describe (python/fastlinalg/_api.py).
^_core\.(matmul|grouped_matmul|sgemm|ssyrk|sgemv|transpose|tensor_\w+)$:
    def \1(*args: Any) -> Any: ...

^_core\.MatmulPlan\.execute$:
    def execute(self, *, stream: Any = None) -> Any:
        \doc

^_core\.MatmulPlan\.plan$:
    def plan(self) -> Any: ...

# The generator leaves out what begins with an underscore.
^_core\.MatmulPlan\.free$:
    def free(self) -> None: ...
    def _reset_operands(self, a: Any, b: Any, c: Any, out: Any) -> None: ...

^_core\.GroupedPlan\.free$:
    def free(self) -> None: ...
    def _execute(self, stream: Any) -> Any: ...

^_core\.MatmulPlan\.(kernel|device)$:
    @property
    def \1(self) -> str | None: ...

^_core\.DeviceArray\.from_numpy$:
    \from numpy import dtype, float32
    \from numpy.typing import NDArray
    @staticmethod
    def from_numpy(array: NDArray[float32], device: str = "cuda") -> DeviceArray: ...

# What they do is to refuse.
^_core\.DeviceArray\.__(init|reduce)__$:

^_core\.DeviceArray\.numpy$:
    def numpy(self) -> NDArray[float32]:
        \doc

^_core\.DeviceArray\.dtype$:
    @property
    def dtype(self) -> dtype[float32]: ...

^_core\.DeviceArray\.__array__$:
    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...

^_core\.DeviceArray\.__dlpack_device__$:
    def __dlpack_device__(self) -> tuple[int, int]: ...

^_core\.DeviceArray\.(shape|strides)$:
    @property
    def \1(self) -> tuple[int, ...]: ...

^_core\.DeviceArray\.__cuda_array_interface__$:
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

^_core\.(info|cuda_memory_info|time_link|explain|tuning_state)$:
    def \1(*args: Any, **options: Any) -> dict[str, Any]: ...

^_core\.operations$:
    def operations() -> tuple[str, ...]: ...

^_core\.(kernels|devices)$:
    def \1(*args: Any) -> list[dict[str, Any]]: ...

# Tests and tools know what they ask it for.
^_core\.testing$:
    testing: Any

# The generator knows the type of a function object, not of its arguments.
^_core\.time_in_graph$:
    \from collections.abc import Callable
    def time_in_graph(work: Callable[[int], object], launches: int, replays: int, device: int = 0) -> list[float]: ...
