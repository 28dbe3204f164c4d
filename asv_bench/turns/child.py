"""One process that measures cases with one build. Started by `rounds`.

PYTHONPATH names the folder of the build. Standard input: a JSON object, `{"site": FOLDER, "cases": [[name, params]]}`,
or `{"list": true}`. Standard output: a JSON object a line, `{"ready": FOLDER}` after import, then `{"value": 1.2e-6}`,
`{"skipped": reason}` or `{"failed": message}` for each case in turn.
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
    module, kind, method = name.split(".")
    device = importlib.import_module("benchmarks.device")
    try:
        one = getattr(importlib.import_module(f"benchmarks.{module}"), kind)()
        device.state()
        try:
            if hasattr(one, "setup"):
                one.setup(*params)
            found: dict[str, Any] = {"value": float(getattr(one, method)(*params))}
            state = device.state()
            return found | ({"state": state} if state else {})
        finally:
            if hasattr(one, "teardown"):
                one.teardown(*params)
    except NotImplementedError as reason:
        return {"skipped": str(reason)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def main() -> None:
    out, sys.stdout = sys.stdout, sys.stderr  # nobody else's words among the answers
    request = json.load(sys.stdin)
    sys.path.insert(0, str(FOLDER))
    # Before the finders of an editable install, which would answer with its own package.
    sys.meta_path.insert(0, importlib.machinery.PathFinder)
    importlib.import_module("benchmarks")
    import fastlinalg

    if "list" in request:
        from turns.cases import every

        print(json.dumps([vars(case) for case in every()]), file=out)
        return
    found = Path(fastlinalg.__file__).resolve().parent.parent
    if found != Path(request["site"]).resolve():
        sys.exit(f"the build in {request['site']} was to be measured, and import found {found}")
    print(json.dumps({"ready": str(found)}), file=out, flush=True)
    for name, params in request["cases"]:
        print(json.dumps(measure(name, params)), file=out, flush=True)


if __name__ == "__main__":
    main()
