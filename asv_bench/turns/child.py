"""One process that measures cases with one build, one after the other. Started by `rounds`.

PYTHONPATH names the folder of the build. Standard input, a line each: a JSON object, `{"list": SET}`, `{"facts": true}`
or `{"site": FOLDER}`, then `[name, params]` of cases. Standard output, a JSON object a line: what was asked for, or
`{"ready": FOLDER}` after import, then `{"value": 1.2e-6}`, `{"skipped": reason}` or `{"failed": message}` for each
case in turn.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent


def measure(name: str, params: list[Any]) -> dict[str, Any]:
    device = importlib.import_module("benchmarks.device")
    one: Any = None
    try:
        kind, method = importlib.import_module("turns.cases").found(name)
        one = kind()
        device.state()
        if hasattr(one, "setup"):
            one.setup(*params)
        found: dict[str, Any] = {"value": float(getattr(one, method)(*params))}
        state = device.state()
        return found | ({"state": state} if state else {})
    except NotImplementedError as reason:
        return {"skipped": str(reason)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    finally:
        if hasattr(one, "teardown"):
            one.teardown(*params)


def facts() -> dict[str, str]:
    """What of the machine only the package knows, and the versions beside it."""
    import numpy

    import fastlinalg as fl

    gpu = fl.devices()[0] if fl.cuda.is_available() else None
    return {
        "python": ".".join(map(str, sys.version_info[:2])),
        "numpy": ".".join(numpy.__version__.split(".")[:2]),
        "gpu": f"{gpu['name']}, {gpu.get('clock_khz', 0) // 1000} MHz" if gpu else "none",
        "driver": str(fl.info()["cuda"].get("driver") or "none") if gpu else "none",
    }


def main() -> None:
    out, sys.stdout = sys.stdout, sys.stderr  # nobody else's words among the answers

    def say(answer: Any) -> None:
        print(json.dumps(answer), file=out, flush=True)

    request = json.loads(sys.stdin.readline())
    sys.path.insert(0, str(FOLDER))
    # Before the finders of an editable install, which would answer with its own package.
    sys.meta_path.insert(0, importlib.machinery.PathFinder)
    importlib.import_module("benchmarks")
    import fastlinalg

    if "facts" in request:
        return say(facts())
    if "list" in request:
        from turns.cases import every

        return say([vars(case) for case in every(request["list"])])
    found = Path(fastlinalg.__file__).resolve().parent.parent
    if found != Path(request["site"]).resolve():
        sys.exit(f"the build in {request['site']} was to be measured, and import found {found}")
    say({"ready": str(found)})
    for line in sys.stdin:
        say(measure(*json.loads(line)))


if __name__ == "__main__":
    main()
