"""Faults that tools/mutants seeds: one operator, constant, condition or statement of a file.

All of a sample stand in one tree: what a fault changes becomes `mutant<17>() ? changed : as it was`, in Python `changed
if mutant(17) else as it was`, and a statement that it drops one that mutant<17>() passes over. So a fault costs no
build. What the compiler evaluates stays as it is: mutant() is false there.

C++ is read without a parser, comments, strings and preprocessor lines blanked: the spaces of clang-format tell
operators from brackets of templates, pointers and signs.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    kind: str
    start: int  # of an expression or a statement
    end: int
    text: str  # in its place
    statement: bool = False

    def of(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]

    def lines(self, source: str) -> range:
        first = source.count("\n", 0, self.start) + 1
        return range(first, first + source.count("\n", self.start, self.end) + 1)


CHOICES = {  # in Python or not, a statement or not
    (True, True): "if not _mutant({0}): {2}",
    (True, False): "({1} if _mutant({0}) else {2})",
    (False, True): "if (::fl_mutants::mutant<{0}>()) {{}} else {2}",
    (False, False): "(::fl_mutants::mutant<{0}>() ? {1} : {2})",
}


def seeded(name: str, source: str, mutations: dict[int, Mutation], header: str) -> str:
    """A file with all of these, by numbers; none of them may overlap another. Lines keep their numbers."""
    python, text = name.endswith(".py"), source
    for number, fault in sorted(mutations.items(), key=lambda item: -item[1].start):
        now = CHOICES[python, fault.statement].format(number, fault.text, source[fault.start : fault.end])
        text = text[: fault.start] + now + text[fault.end :]
    if not python:
        return f'#include "{header}"\n#line 1\n{text}'
    begin = next(re.finditer(r"^(?=from (?!__future__)|import )", text, re.M)).start()
    return f"{text[:begin]}from fastlinalg._mutant import mutant as _mutant; {text[begin:]}"


# ---------------------------------------------------------------- C++
NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)'|\bstatic_assert\([^;]*;"""
    r"""|^[ ]*\#(?:[^\n]*\\\n)*[^\n]*|\bconstexpr [^(){};=]*[={][^;]*;|\btemplate <[^\n]*"""
    r"""|\b__(?:launch_bounds|align)__\((?:[^()]|\([^()]*\))*\)|\bnot_for_this_target\(\);""",
    re.DOTALL | re.MULTILINE,
)
COMMENT = re.compile(r'(?P<comment>//[^\n]*|/\*.*?\*/)|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
OPERATORS = {  # by precedence, and what takes their place
    "arithmetic": [{"*": ("/",), "/": ("*",), "%": ("/",)}, {"+": ("-",), "-": ("+",)}, {"<<": (">>",), ">>": ("<<",)}],
    "relation": [{"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<")},
                 {"==": ("!=",), "!=": ("==",)}],
    "bits": [{"&": ("|",)}, {"^": ("&",)}, {"|": ("&",)}],
    "logic": [{"&&": ("||",)}, {"||": ("&&",)}],
}  # fmt: skip
LEVELS = [(kind, level) for kind, levels in OPERATORS.items() for level in levels]
PRECEDENCE = {operator: -place for place, (_, level) in enumerate(LEVELS) for operator in level}
TOKENS = re.compile(
    r"(?P<bracket>[][(){}])|(?P<end>[;,]|(?<!:):(?!:)|(?<= )\?|(?<= )(?:[-+*/%&|^]|<<|>>)?=(?=[ \n])"
    r"|\b(?:return|throw|else|case|delete|co_yield)\b)|(?<= )(?P<operator>[=!<>]=|<<|>>|&&|\|\||[-+*/%<>&|^])(?=[ \n])"
)
SYNCHRONISATION = re.compile(r"sync|barrier|wait|fence|arrive|commit|(?<!b)lock|notify|event|record|release", re.I)
CALL = r"(?!return\b|throw\b|else\b)[\w:.>\[\]<-]+\(.*\)"
ASSIGNMENT = r"(?!return\b)[\w.>\[\]()*-]+ (?:[-+*/%|&^]|<<|>>)?= .*"
GUARD = r"if \(.*\) (?:return|continue|break|throw)\b.*"
STATEMENTS = re.compile(rf"^ +((?:{CALL}|{ASSIGNMENT}|{GUARD}|(?:\+\+|--)[\w.>-]+|[\w.>-]+(?:\+\+|--));)$", re.M)
WIDE = re.compile(r"\bu?int64_t \w+ = (?=[^;]*;)")


class Cpp:
    def __init__(self, text: str):
        self.text, self.found = text, list[Mutation]()
        self.code = NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        self.bare = COMMENT.sub(lambda match: " " * len(match[0]) if match["comment"] else match[0], text)
        self.tokens = list(TOKENS.finditer(self.code))
        self.partner, open_brackets = dict[int, int](), list[int]()  # of a bracket, by places in the tokens
        for place, token in enumerate(self.tokens):
            if token[0] in "([{":
                open_brackets.append(place)
            elif token["bracket"] and open_brackets:
                other = open_brackets.pop()
                self.partner |= {place: other, other: place}

    def operand(self, place: int, step: int) -> int:
        """Where the operand before (-1) or after (1) an operator ends, which are places in the tokens."""
        level, at, opening = PRECEDENCE[self.tokens[place][0]], place + step, "([{" if step > 0 else ")]}"
        while 0 <= at < len(self.tokens):
            token = self.tokens[at]
            if token["bracket"]:
                if token[0] not in opening or at not in self.partner:
                    break
                at = self.partner[at]
            elif token["end"] or PRECEDENCE[token[0]] < level + (step > 0):
                break
            at += step
        if not 0 <= at < len(self.tokens):
            return 0 if step < 0 else len(self.code)
        return self.tokens[at].end() if step < 0 else self.tokens[at].start()

    def part(self, start: int, end: int) -> str:
        """On one line."""
        return " ".join(self.bare[start:end].split())

    def add(self, kind: str, start: int, end: int, text: str, statement: bool = False) -> None:
        while self.code[start:end] and self.text[start].isspace():
            start += 1
        while self.code[start:end] and self.text[end - 1].isspace():
            end -= 1
        self.found.append(Mutation(kind, start, end, text, statement))

    def closing(self, opening: int) -> int:
        place = next(at for at, token in enumerate(self.tokens) if token.start() == opening)
        return self.tokens[self.partner.get(place, place)].end()

    def binary(self) -> None:
        for place, token in enumerate(self.tokens):
            if not token["operator"]:
                continue
            start, end = self.operand(place, -1), self.operand(place, 1)
            left, right = self.part(start, token.start()), self.part(token.end(), end)
            kind, level = LEVELS[-PRECEDENCE[token[0]]]
            for other in level[token[0]]:
                self.add(kind, start, end, f"(({left}) {other} ({right}))")

    def words(self) -> None:
        for match in re.finditer(r"(?<![\w.'])\d{1,9}(?![\w.':])", self.code):
            for value in {int(match[0]) + 1, max(int(match[0]) - 1, 0)} - {int(match[0])}:
                self.add("constant", *match.span(), str(value))
        for match in re.finditer(r"\b(?:true|false)\b", self.code):
            self.add("constant", *match.span(), "false" if match[0] == "true" else "true")
        for match in re.finditer(r"(?:std::)?\b(min|max)(?:<[\w:]+>)?(?=\()(?!\(\))", self.code):
            end = self.closing(match.end())
            other = match[0].replace(match[1], "max" if match[1] == "min" else "min")
            self.add("bound", match.start(), end, other + self.part(match.end(), end))
        for match in WIDE.finditer(self.code):
            end = self.code.index(";", match.end())
            if not re.search(r", \w+ = |{|^\d+$", self.code[match.end() : end]):
                self.add("width", match.end(), end, f"int32_t({self.part(match.end(), end)})")

    def statements(self) -> None:
        for match in STATEMENTS.finditer(self.code):
            begins = self.code[: match.start()].rstrip()[-1:] in ";{}):"  # and does not go on with a line before it
            if begins and match[1].count("(") == match[1].count(")"):
                kind = "synchronisation" if SYNCHRONISATION.search(match[1]) else "statement"
                self.add(kind, *match.span(1), ";", statement=True)
        for match in re.finditer(r"\b(?:if|while) (?=\()", self.code):
            start, end = match.end(), self.closing(match.end())
            if not re.search(r"[;{]|[^=!<>]=[^=]", self.code[start:end]):  # which declares something
                self.add("condition", start + 1, end - 1, f"!({self.part(start + 1, end - 1)})")


# ---------------------------------------------------------------- Python
SWAPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip

NOT_EVALUATED = ("annotation", "returns", "decorator_list", "pattern")


def python_nodes(node: ast.AST, inside: bool = False) -> Iterator[ast.AST]:
    """What is evaluated when a function runs."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and name == "body"
            skipped = isinstance(child, ast.JoinedStr | ast.arguments) or name in NOT_EVALUATED
            if isinstance(child, ast.AST) and not skipped:
                if inside or function:
                    yield child
                yield from python_nodes(child, inside or function)


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    def changed(**fields) -> ast.AST:
        other = copy.deepcopy(node)
        vars(other).update(fields)
        return other

    match node:
        case ast.Compare() if type(node.ops[0]) in SWAPPED:
            yield "relation", changed(ops=[SWAPPED[type(node.ops[0])](), *node.ops[1:]])
        case ast.BoolOp() | ast.BinOp() if type(node.op) in SWAPPED:
            yield "logic" if isinstance(node, ast.BoolOp) else "arithmetic", changed(op=SWAPPED[type(node.op)]())
        case ast.Constant(value=bool()):
            yield "constant", changed(value=not node.value)
        case ast.Constant(value=int()):
            yield "constant", changed(value=node.value + 1)
        case ast.Expr(value=ast.Call()) | ast.Assign() | ast.AugAssign() | ast.Raise():
            yield "statement", None
        case ast.If() | ast.While() | ast.IfExp():
            yield "condition", ast.UnaryOp(ast.Not(), node.test)


def python_mutations(text: str) -> list[Mutation]:
    starts, found = [0], []
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in python_nodes(ast.parse(text)):
        for kind, other in changes(node):
            at = node.test if kind == "condition" else node
            if text.isascii():
                start, end = starts[at.lineno - 1] + at.col_offset, starts[at.end_lineno - 1] + at.end_col_offset
                now = f"({ast.unparse(ast.fix_missing_locations(other))})" if other else "pass"
                found.append(Mutation(kind, start, end, now, statement=other is None))
    return found


def mutations(name: str, text: str) -> list[Mutation]:
    """All that can be changed in a file of that name."""
    if name.endswith(".py"):
        return python_mutations(text)
    cpp = Cpp(text)
    cpp.binary()
    cpp.words()
    cpp.statements()
    return cpp.found
