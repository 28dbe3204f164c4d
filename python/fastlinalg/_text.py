"""Aligned plain text, and names that come nearest to a wrong one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def aligned(rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Rows of cells as lines with aligned columns.

    Parameters
    ----------
    rows : iterable of sequences of str
        All of the same length.
    right : iterable of int
        The columns to align on the right.
    """
    cells = [list(row) for row in rows]
    if not cells:
        return []
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    to_right = set(right)
    return [
        "  ".join(
            c.rjust(w) if i in to_right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def nearest(word: str, known: Iterable[str]) -> str:
    """The known words that come nearest, as "; did you mean X or Y?"; "" if none is near."""
    import difflib  # here: nobody who imports the package needs it

    known = list(known)
    close = difflib.get_close_matches(word, known, n=3)
    begun = [name for name in known if name.startswith(word) and name not in close]
    found = [*close, *begun][:3]
    listed = ", ".join([*found[:-2], " or ".join(found[-2:])])
    return f"; did you mean {listed}?" if found else ""


def unknown(kind: str, word: str, known: Iterable[str]) -> str:
    """That there is no such thing, what comes nearest, and what there is."""
    known = list(known)
    there_are = " There are" if (near := nearest(word, known)) else "; there are"
    return f"there is no {kind} {word!r}{near}{there_are} {', '.join(known)}"
