"""What a process pays: import, the first call, memory, and the size of what is installed."""

import io
import os
import statistics
import subprocess
import sys
import zipfile
from pathlib import Path

import fastlinalg as fl

from . import support as s

TIMES = 5


def _answer(code):
    """What a new process prints. It finds this package, whatever folder it is in."""
    path = os.pathsep.join([str(Path(fl.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def _first_matmul(device, before=""):
    return (
        "import time, numpy as np\na = np.ones((512, 512), np.float32)\nimport fastlinalg as fl\n" + before
        + f"t = time.perf_counter()\nfl.matmul(a, a, device='{device}')\nprint(time.perf_counter() - t)"
    )  # fmt: skip


class Start:
    """Seconds, the least of five processes. NumPy's own import comes before and is not counted."""

    version = "1"
    params = (["import", "first matmul", "first matmul, 2 threads"],)
    param_names = ("what",)
    quick = {"track_seconds": [("import",), ("first matmul",)]}

    _code = {
        "import": "import time, numpy\nt = time.perf_counter()\nimport fastlinalg\nprint(time.perf_counter() - t)",
        "first matmul": _first_matmul("cpu", "fl.set_num_threads(1)\n"),
        "first matmul, 2 threads": _first_matmul("cpu", "fl.set_num_threads(2)\n"),
    }

    @s.unit("seconds")
    def track_seconds(self, what):
        return min(_answer(self._code[what]) for _ in range(TIMES))


class FirstOnDevice:
    """Seconds from the first call on the GPU to its result, NumPy to NumPy: context, code, and memory."""

    version = "1"

    def setup(self):
        s.demand(fl.cuda.is_available(), f"no CUDA device: {fl.info()['cuda']['message']}")

    @s.unit("seconds")
    def track_seconds(self):
        return statistics.median(_answer(_first_matmul("cuda")) for _ in range(3))


class Memory:
    """Peak resident bytes that the first product adds to a process, operands and result not counted."""

    version = "1"
    params = (["256x256x256", "1024x1024x1024", "4096x4096x64"], [1, 2])
    param_names = ("shape", "threads")
    quick = {"track_bytes": [("1024x1024x1024", 1)]}

    def setup(self, shape, threads):
        s.demand_threads(threads)
        s.demand(os.path.exists("/proc/self/clear_refs"), "the peak is asked of Linux")

    @s.unit("bytes")
    def track_bytes(self, shape, threads):
        m, n, k = s.sizes(shape)
        status = (
            "def now(name):\n    lines = open('/proc/self/status').read().splitlines()\n"
            "    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))\n"
        )
        return _answer(
            "import numpy as np, fastlinalg as fl\n"
            + status
            + f"fl.set_num_threads({threads})\n"
            + f"a, b, c = (np.ones(s, np.float32) for s in (({m}, {k}), ({k}, {n}), ({m}, {n})))\n"
            + "open('/proc/self/clear_refs', 'w').write('5')\n"  # the peak begins anew
            + "before = now('VmRSS')\nfl.matmul(a, b, c, device='cpu')\nprint(now('VmHWM') - before)"
        )


class Size:
    """Bytes of the installed package, and of its files in an archive compressed like a wheel."""

    version = "1"
    quick = {"track_installed_bytes": [()], "track_wheel_bytes": [()]}

    def setup(self):
        folder = Path(fl.__file__).parent
        self.files = [file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts]

    @s.unit("bytes")
    def track_installed_bytes(self):
        return sum(file.stat().st_size for file in self.files)

    @s.unit("bytes")
    def track_wheel_bytes(self):
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in self.files:
                archive.write(file, file.relative_to(Path(fl.__file__).parent))
        return len(memory.getvalue())
