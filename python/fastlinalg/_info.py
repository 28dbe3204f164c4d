"""What the library is and what it found on this machine."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex, overload

from . import _core
from ._text import aligned, nearest

# Not the folder of this file, which an editable install leaves in the source tree.
_INSTALLED = Path(_core.__file__).parent

OPERATIONS = _core.operations()


@dataclass(frozen=True)
class Traits:
    """What a kernel is, besides what it computes.

    Attributes
    ----------
    strict : bool
        Whether it serves ``precision="strict"``, and so is exact wherever float32 is. The others answer to
        ``precision="accurate"`` alone.
    ladder : bool
        Whether it is a step of the course, there to be read.
    tile : str
        Rows and columns of the result that a block computes, "64x64"; empty if that is not fixed.
    terms : str
        What it multiplies in place of float32 numbers: "fp16x2", "bf16x6", or empty.
    split_k, cluster_k, stream_k : bool
        Whether blocks may take ranges of k whose sums meet in memory; whether the blocks of a cluster may share a
        tile's k; whether tiles may be shared out evenly among blocks.
    tma : bool
        Whether the tensor memory accelerator moves operands or results where it can.
    addend : bool
        Whether it reads what beta multiplies where it lies; else that is copied to the result first.
    triangle : bool
        Whether it computes one triangle of a product that is symmetric, ``a @ a.T``, and mirrors it.
    reproducible : bool
        Whether it serves ``precision="reproducible"`` too.
    measured_on : tuple of str
        The chips whose measurements its cost was fitted to, "h200" or the CPUs "zen4", "zen5"; none of a kernel for a
        CPU that nobody has measured.
    """

    strict: bool
    ladder: bool
    tile: str
    terms: str
    split_k: bool
    cluster_k: bool
    stream_k: bool
    tma: bool
    addend: bool
    triangle: bool
    reproducible: bool
    measured_on: tuple[str, ...]


@dataclass(frozen=True)
class Kernel:
    """One row of the kernel table.

    Attributes
    ----------
    op : str
        "sgemm", "sgemv" or "transpose".
    name : str
        What the ``kernel=`` argument takes.
    device : str
        "cpu" or "cuda".
    needs : str
        The hardware it needs: "baseline", "avx2_fma", "avx512f", "amx_bf16", "neon", "cuda", "sm_80", "sm_90",
        "sm_90a".
    available : bool
        Whether this machine has it, and this build code for it.
    reason : str
        Why not; empty if available.
    passed_over : str
        Why it is chosen by ``kernel=`` alone where it is available: nobody has measured it on such a chip, or it is not
        known to gain anything there. ``fastlinalg tune`` checks and times it, and from then on it may be chosen.
    blurb : str
        One line of text.
    traits : Traits
        What the kernel is.
    strict : bool
        ``traits.strict``.
    """

    op: str
    name: str
    device: str
    needs: str
    available: bool
    reason: str
    passed_over: str
    blurb: str
    traits: Traits

    @property
    def strict(self) -> bool:
        return self.traits.strict

    @property
    def runs(self) -> str:
        """ "yes", "by name" (with ``kernel=`` alone) or "no"."""
        return "no" if not self.available else "by name" if self.passed_over else "yes"

    def __str__(self) -> str:
        return self.name


class KernelTable(list[Kernel]):
    """The list that `kernels` returns: rows by index and by name, ``table["portable"]``; slices are tables.

    It prints as a table, those that run here first.
    """

    @overload
    def __getitem__(self, key: SupportsIndex | str, /) -> Kernel: ...
    @overload
    def __getitem__(self, key: slice, /) -> KernelTable: ...
    def __getitem__(self, key: SupportsIndex | str | slice, /) -> Kernel | KernelTable:
        if isinstance(key, str):
            return self._named(key)
        return KernelTable(super().__getitem__(key)) if isinstance(key, slice) else super().__getitem__(key)

    def _named(self, name: str) -> Kernel:
        for row in self:
            if row.name == name:
                return row
        raise KeyError(f"no kernel {name!r} in this table{nearest(name, [row.name for row in self])}")

    def __str__(self) -> str:
        here_first = sorted(self, key=lambda row: not row.available)
        rows = [(k.name, k.device, k.needs, k.runs, k.blurb) for k in here_first]
        return "\n".join(aligned([("KERNEL", "DEVICE", "NEEDS", "RUNS", ""), *rows]))

    def __repr__(self) -> str:
        here = sum(row.available for row in self)
        return f"<KernelTable: {len(self)} kernels, {here} of them run here; print() shows them>"


def kernels(op: str, *, device: str | None = None) -> KernelTable:
    """The kernels of one operation, in the order of the kernel table.

    Parameters
    ----------
    op : {"sgemm", "sgemv", "transpose"}
    device : {"cpu", "cuda"}, optional
        Only those for it.

    Returns
    -------
    KernelTable
        A list of `Kernel`, those that cannot run here too, with the reason. It prints as a table.

    Raises
    ------
    ValueError
        An unknown operation or device.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> [kernel.name for kernel in fl.kernels("sgemm", device="cpu")[:2]]
    ['reference', 'portable']
    >>> fl.kernels("sgemm")["portable"].available
    True
    """
    if device not in (None, "cpu", "cuda"):
        raise ValueError(f"device must be 'cpu', 'cuda' or None, got {device!r}")
    rows = (Kernel(op=op, **row | {"traits": Traits(**row["traits"])}) for row in _core.kernels(op))
    return KernelTable(row for row in rows if device in (None, row.device))


def info() -> dict[str, Any]:
    """What was built and what was found.

    Returns
    -------
    dict
        ``version``; ``cuda_built`` and ``architectures`` of the build; ``cpu`` with the instruction set in use, the
        thread setting and the most threads allowed here; ``cuda`` with ``available`` and, if not, the code, name and
        message of the reason, the CUDA versions of driver and runtime (13000 is 13.0, 0 is none), and ``missing_code``:
        why a device lacks kernels that its hardware could run, empty if it has them all; ``tuning`` with the ``table``
        of `fastlinalg tune` that corrects the choice of kernels here, or None, and in the ``message`` why none;
        ``python`` and ``numpy``, versions; ``environment``, the variables that begin with ``FASTLINALG_``, and
        ``OMP_NUM_THREADS``; ``unusable_settings``, a sentence for each of them that does not mean what it says.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> fl.info()["version"] == fl.__version__, sorted(fl.info()["cuda"])[:2]
    (True, ['available', 'code'])
    """
    import numpy

    set_here = {name: value for name, value in sorted(os.environ.items()) if _is_ours(name)}
    found = {"python": platform.python_version(), "numpy": numpy.__version__, "environment": set_here}
    return {**_core.info(), "tuning": _tuning(), **found}


def _is_ours(variable: str) -> bool:
    return variable.startswith("FASTLINALG_") or variable == "OMP_NUM_THREADS"


def _tuning() -> dict[str, str | None]:
    """The table in use, which is read now if no call has done it."""
    state = _core.tuning_state()
    path, table, complaint = (state[name] for name in ("path", "in_use", "complaint"))
    if table:
        message = ""
    elif complaint:
        message = complaint
    elif not path:
        wanted = os.environ.get("FASTLINALG_TUNE")
        message = f"FASTLINALG_TUNE={wanted}" if wanted else "no cache folder: neither XDG_CACHE_HOME nor HOME is set"
    elif os.path.exists(path):
        message = f"{path} corrects nothing on this machine"
    else:
        message = f"there is no {path}"
    return {"table": table or None, "message": message}


def devices() -> list[dict[str, Any]]:
    """The CUDA devices.

    Returns
    -------
    list of dict
        ``ordinal``, ``name``, ``compute_capability`` and ``pretended``, which says so where
        ``FASTLINALG_COMPUTE_CAPABILITY`` has put another in its place or is ignored; ``hardware_capability``, which
        stays; ``sm_count``, ``clock_khz``; ``memory``, ``l2_cache`` and ``shared_per_block`` in bytes;
        ``memory_bytes_per_us``; ``peak_gflops`` (float32 FMA pipes at the highest clock); ``costs_from``, the measured
        chip whose costs are used, carried over if it is another. Empty without a device: a normal state, whose reason
        is in ``info()["cuda"]["message"]``.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> bool(fl.devices()) == fl.cuda.is_available()
    True
    """
    return _core.devices()


_COMPANIONS = ("numpy", "torch", "cupy-cuda13x", "jax", "numba", "cuda-core", "dask", "threadpoolctl")


def _version_of(package: str) -> str | None:
    import importlib.metadata  # here: it takes longer to import than all of this package

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def cuda_version(number: int) -> str:
    """13000 is "CUDA 13.0", 0 is "none"."""
    return f"CUDA {number // 1000}.{number % 1000 // 10}" if number else "none"


def settings(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What else than the machine decides how calls are answered, of `info`: a name and a text each."""
    tuning = found["tuning"]
    rows = [("tuning table", tuning["table"] or f"none: {tuning['message']}")]
    rows += [(name, value if value.isprintable() else repr(value)) for name, value in found["environment"].items()]
    return rows + [("warning", text) for text in found["unusable_settings"]]


def show_versions() -> None:
    """Print what a bug report needs: versions of the library, of Python and of packages that share its arrays,
    the machine, the tuning table in use, and the environment variables that the library reads.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> fl.show_versions()  # doctest: +ELLIPSIS
    fastlinalg ...
    """
    found = info()
    cpu, cuda = found["cpu"], found["cuda"]
    rows = [
        ("fastlinalg", found["version"]),
        (
            "built for",
            f"{cuda_version(cuda['runtime'])}, {found['architectures']}" if found["cuda_built"] else "the CPU alone",
        ),
        ("python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("system", platform.platform()),
        ("cpu", f"{platform.machine()}, {cpu['isa']}, {cpu['threads']} threads"),
        ("driver", cuda_version(cuda["driver"])),
    ]
    rows += [(f"cuda:{d['ordinal']}", f"{d['name']}, {d['hardware_capability']}") for d in devices()]
    rows += [(package, version) for package in _COMPANIONS if (version := _version_of(package))]
    print("\n".join(aligned(rows + settings(found))))


def get_include() -> str:
    """The folder with the C and C++ headers, ``<fastlinalg/fastlinalg.h>`` and ``<fastlinalg/fastlinalg.hpp>``.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> from pathlib import Path
    >>> Path(fl.get_include(), "fastlinalg", "fastlinalg.h").exists()
    True
    """
    return str(_INSTALLED / "include")


def get_cmake_dir() -> str:
    """The folder to pass as ``-Dfastlinalg_DIR`` for ``find_package(fastlinalg CONFIG)``.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> from pathlib import Path
    >>> any(Path(fl.get_cmake_dir()).glob("*.cmake"))
    True
    """
    return str(_INSTALLED / "lib" / "cmake" / "fastlinalg")


def load_library() -> str:
    """The library with the C interface, ``<fastlinalg/fastlinalg.h>``, that this package computes with.

    An extension module that links it finds it, wherever that is, if it is imported after a call of this function: a
    package of such modules makes the call in its ``__init__.py``. Both share the library's threads and memory.

    Returns
    -------
    str
        The path of the copy that is loaded, for ``ctypes.CDLL`` and its like.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> "libfastlinalg.so" in fl.load_library()
    True
    """
    return _core.library_path()
