"""The quick set as a regular expression for `asv run --bench`: `python -m turns.quick`, in asv_bench/.

Without a GPU it leaves out what needs one, which asv would list as n/a.
"""

from .cases import Case, every, regex


def possible(case: Case, gpu: bool) -> bool:
    return gpu or not (case.name.startswith("gpu.") or "cuda" in case.params)


if __name__ == "__main__":
    import fastlinalg as fl

    print(regex(case for case in every("quick") if possible(case, fl.cuda.is_available())))
