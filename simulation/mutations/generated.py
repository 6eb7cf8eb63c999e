"""Mutations that a program makes of the runtime's source: conditions, operands, constants, elements, statements."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

_OPPOSED: Final[tuple[tuple[type[ast.AST], type[ast.AST]], ...]] = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
    *((ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv), (ast.And, ast.Or)),
)
_SWAPPED: Final = {operator: other() for pair in _OPPOSED for operator, other in (pair, pair[::-1])}
_ENDS: Final = {"first": "last", "last": "first"}
_REMOVED: Final = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Raise, ast.Continue, ast.Break)
_LEFT_OUT: Final = ("annotation", "returns", "decorator_list", "args")
"""Fields of no effect, and the parameters of functions; the arguments of a call are changed."""

_WIDTH: Final = 50
"""Of code in the name of a change; further changes of a function with one name have a number."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A changed place of a function, or of what is nested in it: bytes of a file, and what stands there instead."""

    file: str
    function: str
    change: str
    begin: int
    end: int
    text: str

    @property
    def reached(self) -> str:
        return f"{self.file} {self.function}"

    @property
    def name(self) -> str:
        return f"{self.reached}: {self.change}"

    def apply(self, source: str) -> str:
        encoded = source.encode()
        return (encoded[: self.begin] + self.text.encode() + encoded[self.end :]).decode()


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield functions and methods of a module by qualified name, without nested ones."""

    def inside(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                yield f"{prefix}{node.name}", node
            elif isinstance(node, ast.ClassDef):
                yield from inside(node.body, f"{prefix}{node.name}.")

    yield from inside(tree.body, "")


def generate(file: str, source: str) -> Iterator[Generated]:
    """Yield all mutations of a module's functions, in the order of the source."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for name, function in functions(ast.parse(source)):
        changes = Counter[str]()
        for node, field in _places(function, ""):
            for change, new in _changes(node, field):
                changes[change] += 1
                begin = starts[node.lineno - 1] + node.col_offset
                end = starts[node.end_lineno - 1] + node.end_col_offset
                text = ast.unparse(new)
                label = change if changes[change] == 1 else f"{change} ({changes[change]})"
                yield Generated(file, name, label, begin, end, text if isinstance(new, ast.stmt) else f"({text})")


def _places(node: ast.AST, field: str) -> Iterator[tuple[Any, str]]:
    """Yield nodes with the fields that they stand in, without the words of messages."""
    if isinstance(node, (ast.JoinedStr, ast.arguments)):
        return
    yield node, field
    for name, value in ast.iter_fields(node):
        if name in _LEFT_OUT and not isinstance(node, ast.Call):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST):
                yield from _places(item, name)


def _changes(node: ast.AST, field: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the changes of a node: how it is called, and what stands in its place."""
    text = _text(node)
    if field in ("test", "ifs") or (_is_condition(node) and field not in ("values", "operand")):
        yield f"{text} → True", ast.Constant(True)
        yield f"{text} → False", ast.Constant(False)
    if field == "type":
        yield f"except {text} → except ()", ast.Tuple([], ast.Load())
    if isinstance(node, _REMOVED) and not _is_docstring(node):
        yield f"without {text}", ast.Pass()
    for new in chain(_other(node), _parts(node)):
        yield f"{text} → {_text(new)}", new
    for element, new in _shorter(node):
        yield f"without {_text(element)}", new


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_condition(node: ast.AST) -> bool:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in ("all", "any", "bool", "isinstance") or name.startswith("is_")
    return False


def _other(node: ast.AST) -> Iterator[ast.AST]:
    """Yield another constant, other operators, and another end."""
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.Compare(ops=[op]) if type(op) in _SWAPPED:
            yield _with(node, ops=[_SWAPPED[type(op)]])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in _SWAPPED:
            yield _with(node, op=_SWAPPED[type(op)])
        case ast.Name(id="first" | "last" as name, ctx=ast.Load()):
            yield _with(node, id=_ENDS[name])
        case ast.Attribute(attr="first" | "last" as name, ctx=ast.Load()):
            yield _with(node, attr=_ENDS[name])


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield operands and arguments alone."""
    match node:
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Subscript(value=whole, slice=ast.Slice()):
            yield whole
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_] as arguments):
            yield from arguments


def _shorter(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield operands, elements and arguments with what is left without them."""
    match node:
        case ast.BoolOp(values=values):
            for value, rest in _without(values):
                yield value, _with(node, values=rest) if rest[1:] else rest[0]
        case ast.Dict(keys=keys, values=values):
            for (key, value), (_, rest) in zip(zip(keys, values, strict=True), _without(keys), strict=True):
                yield key or value, _with(node, keys=rest, values=[other for other in values if other is not value])
        case ast.List(elts=elements) | ast.Set(elts=elements) if len(elements) > 1:
            yield from ((element, _with(node, elts=rest)) for element, rest in _without(elements))
        case ast.Call(args=arguments, keywords=keywords):
            if len(arguments) > 1:
                yield arguments[-1], _with(node, args=arguments[:-1])
            yield from ((keyword, _with(node, keywords=rest)) for keyword, rest in _without(keywords))


def _without(nodes: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    return ((node, nodes[:index] + nodes[index + 1 :]) for index, node in enumerate(nodes))


def _with(node: Any, **fields: Any) -> Any:
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def _text(node: ast.AST) -> str:
    text = ast.unparse(node).partition("\n")[0]
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
