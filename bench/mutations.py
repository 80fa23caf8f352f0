"""Small changes to Python source, each of which should make a test fail."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

SWAPS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
SIGNS: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Mutation(NamedTuple):
    """One change: the characters from ``start`` to ``end`` of a file become ``text``."""

    file: str
    line: int
    column: int  # from 1
    last: int  # the last line of the statement, or of its head
    start: int
    end: int
    before: str
    text: str
    on_import: bool  # whether it runs when the module is imported, and not in a function

    @property
    def change(self) -> str:
        return f"{_short(self.before)}  →  {_short(self.text)}"

    def is_valid(self, source: str) -> bool:
        """Whether it is still Python: `1` in a pattern cannot become `(1 + 1)`."""
        try:
            ast.parse(self.applied(source))
        except SyntaxError:
            return False
        return True

    def applied(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else f"{words[:40]} … {words[-15:]}"


def mutations(file: str, source: str) -> list[Mutation]:
    """All mutations of a module, in the order of its lines."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = source.splitlines()

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())  # columns count bytes

    found = []
    tree = ast.parse(source)
    waits = {
        each.lineno for each in tree.body if isinstance(each, ast.Assign) and "# seconds" in lines[each.lineno - 1]
    }
    functions = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    inside = {line for each in functions for line in range(each.body[0].lineno, (each.end_lineno or 0) + 1)}
    for statement, node, text in _changes(tree):
        if statement.lineno in waits:  # how long to wait: a test that noticed a second more would be slow
            continue
        start, end = (
            offset(node.lineno, node.col_offset),
            offset(node.end_lineno or node.lineno, node.end_col_offset or 0),
        )
        body = getattr(statement, "body", None)  # of a compound statement only the head counts
        last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
        first = min(node.lineno, statement.lineno)
        found.append(
            Mutation(
                file,
                node.lineno,
                start - starts[node.lineno - 1] + 1,
                max(last, first),
                start,
                end,
                source[start:end],
                text,
                node.lineno not in inside,
            )
        )
    return sorted(found, key=lambda mutation: (mutation.start, mutation.text))


def _changes(tree: ast.Module) -> "Iterator[tuple[ast.stmt, ast.expr | ast.stmt, str]]":
    """Statement, the node in it that changes, and its new text."""
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.stmt) or isinstance(statement, ast.Import | ast.ImportFrom | ast.ClassDef):
            continue
        yield from _dropped(statement)
        if isinstance(statement, ast.If | ast.While):
            yield statement, statement.test, f"(not ({ast.unparse(statement.test)}))"
        for expression in _expressions(statement):
            for node in _walk(expression):
                for text in _replaced(node):
                    yield statement, node, text


def _dropped(statement: ast.stmt) -> "Iterator[tuple[ast.stmt, ast.stmt, str]]":
    match statement:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete():
            yield statement, statement, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield statement, statement, "pass"
        case ast.Return(value=ast.Constant(value=None | False)):  # None is as false as False
            pass
        case ast.Return(value=ast.expr()):
            yield statement, statement, "return None"
        case ast.Continue() | ast.Break() | ast.Raise():
            yield statement, statement, "pass"


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions that run as part of a statement itself; no annotations, no decorators."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from statement.args.defaults
            yield from (default for default in statement.args.kw_defaults if default)
        case ast.AnnAssign():
            yield from filter(None, [statement.value])
        case ast.Raise():  # the words of an error are tested where it is shown
            pass
        case _:
            yield from (child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr))
            for item in getattr(statement, "items", []):
                yield item.context_expr


def _walk(node: ast.AST) -> Iterator[ast.expr]:
    """All expressions, except in f-strings, whose positions Python 3.11 does not know."""
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.expr):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def _replaced(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            yield f"({_text(left)} {SWAPS[type(operator)]} {_text(right)})"
        case ast.Constant(value=bool() as value):
            yield str(not value)
        case ast.Constant(value=int() as value):
            yield f"({value} + 1)"
            yield f"({value} - 1)"
        case ast.Constant(value=float() as value):
            yield f"({value!r} + 1)"
        case ast.BoolOp(op=operator, values=values):
            yield f"({(' or ' if isinstance(operator, ast.And) else ' and ').join(map(_text, values))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"({ast.unparse(operand)})"
        case ast.IfExp(test=test, body=body, orelse=otherwise):
            yield f"({_text(otherwise)} if {_text(test)} else {_text(body)})"
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in SIGNS and not _is_text(node):
            yield f"({_text(left)} {SIGNS[type(operator)]} {_text(right)})"
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in TWINS:
            rest = [ast.unparse(argument) for argument in [*arguments, *node.keywords]]
            yield f"{TWINS[name]}({', '.join(rest)})"


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _is_text(node: ast.AST) -> bool:
    """Whether strings or lists are put together."""
    kinds = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
    return any(
        isinstance(each, kinds) or (isinstance(each, ast.Constant) and isinstance(each.value, str | bytes))
        for each in ast.walk(node)
    )
