"""The quick set as a regular expression for `asv run --bench`: `python -m turns.quick`, in asv_bench/."""

from .cases import every, regex

if __name__ == "__main__":
    print(regex(every("quick")))
