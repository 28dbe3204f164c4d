"""Faults that tools/mutants seeds: one operator, constant, condition or statement of a file, by regular expressions.

They read code whose comments, strings and preprocessor lines are blanked. The spaces of clang-format and ruff tell
operators from brackets of templates, pointers and signs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    kind: str
    line: int
    start: int  # of the characters that are replaced
    end: int
    text: str

    def of(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)'|\bstatic_assert\([^;]*;"""
    r"""|^[ ]*\#(?:[^\n]*\\\n)*[^\n]*""",
    re.DOTALL | re.MULTILINE,
)
NOT_PYTHON = re.compile(r'\w*""".*?"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*', re.DOTALL)

OPERATORS = {
    "relation": {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",),
                 "!=": ("==",)},
    "logic": {"&&": ("||",), "||": ("&&",), "and": ("or",), "or": ("and",)},
    "arithmetic": {"+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "//": ("*",), "%": ("/",), "<<": (">>",),
                   ">>": ("<<",), "&": ("|",), "|": ("&",), "+=": ("-=",), "-=": ("+=",)},
}  # fmt: skip
WORDS = {"true": "false", "false": "true", "True": "False", "False": "True", "min": "max", "max": "min"}
SYNCHRONISATION = re.compile(r"sync|barrier|wait|fence|arrive|commit|(?<!b)lock|notify|event|record|release", re.I)
CALL = r"(?!return\b|throw\b|yield\b|await\b|assert\b|raise\b|super\b)[\w:.>\[\]<-]+\(.*\)"
ASSIGNMENT = r"(?!return\b)[\w.>\[\]()*-]+ (?:[-+*/%|&^]|//|<<|>>)?= .*"
GUARD = r"if \(.*\) (?:return|continue|break|throw)\b.*"
Change = Callable[[re.Match[str]], tuple[str, ...]]


def one_more_or_less(match: re.Match[str]) -> tuple[str, ...]:
    value = int(match[1])
    return (str(value + 1), *([str(value - 1)] if value else []))


# What is replaced is the first group.
RULES: list[tuple[str, str, Change]] = [
    *(
        (kind, rf" ({re.escape(operator)})(?=[ \n])", lambda _, others=others: others)
        for kind, operators in OPERATORS.items()
        for operator, others in operators.items()
    ),
    ("constant", r"(?<![\w.'])(\d{1,9})(?![\w.'])", one_more_or_less),
    ("constant", r"\b(true|false|True|False)\b", lambda match: (WORDS[match[1]],)),
    ("bound", r"\b(min|max)(?=[(<])(?!\(\))", lambda match: (WORDS[match[1]],)),
    ("negation", r"(?<![\w)\]])(!)(?=[\w(:*])", lambda _: ("",)),
    ("negation", r"\b(not )", lambda _: ("",)),
    ("memory order", r"\bmemory_order_(acquire|release|acq_rel|seq_cst)\b", lambda _: ("relaxed",)),
    ("width", r"\bu?(int64_t|size_t)(?=[{(]|>\(| \w+ = )", lambda _: ("int32_t",)),
]
STATEMENTS = re.compile(rf"^ +((?:{CALL}|{ASSIGNMENT}|{GUARD}|(?:\+\+|--)[\w.>-]+|[\w.>-]+(?:\+\+|--));)$", re.M)
PYTHON_STATEMENTS = re.compile(rf"^ +({CALL}|{ASSIGNMENT})$", re.M)


def blanked(text: str, left_out: re.Pattern[str]) -> str:
    return left_out.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def closing(code: str, opening: int) -> int:
    """Where the bracket that opens there closes."""
    depth = 0
    for place in range(opening, len(code)):
        depth += (code[place] == "(") - (code[place] == ")")
        if not depth:
            return place
    return opening


def conditions(code: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(r"\bif (\()", code):
        start, end = match.start(1) + 1, closing(code, match.start(1))
        if not re.search(r"[;{]|[^=!<>]=[^=]", code[start:end]):  # which declares something
            yield start, end


def mutations(name: str, text: str) -> list[Mutation]:
    """All that can be changed in a file of that name."""
    python = name.endswith(".py")
    code = blanked(text, NOT_PYTHON if python else NOT_CODE)
    found: list[Mutation] = []

    def add(kind: str, start: int, end: int, new: str) -> None:
        found.append(Mutation(kind, text.count("\n", 0, start) + 1, start, end, new))

    for kind, pattern, change in RULES:
        for match in re.finditer(pattern, code):
            for new in change(match):
                add(kind, *match.span(1), new)
    for match in (PYTHON_STATEMENTS if python else STATEMENTS).finditer(code):
        if match[1].count("(") == match[1].count(")"):
            kind = "synchronisation" if SYNCHRONISATION.search(match[1]) else "statement"
            add(kind, *match.span(1), "pass" if python else ";")
    for start, end in conditions(code):
        add("condition", start, end, f"!({text[start:end]})")
    return found
