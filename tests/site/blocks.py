"""The Python blocks of the documentation's pages, and the values that their comments promise.

A comment that is a Python literal, behind an expression, is the expression's value: ``counters.get(…)  # 3``.
A block of which the first line is ``# name.py`` is a file of that name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"

_BLOCK = re.compile(r"(?ms)^```python\n(.*?)^```$")
_FILE = re.compile(r"# (\w+\.py)\n")
_COMMENT = re.compile(r"  # (.+)$")


@dataclass(frozen=True)
class Block:
    """A block, and the line of its page where its code begins."""

    page: Path
    line: int
    code: str

    @property
    def file(self) -> str | None:
        match = _FILE.match(self.code)
        return match[1] if match else None

    def statements(self) -> list[ast.stmt]:
        """Return the block's code, with the lines of its page."""
        return ast.parse("\n" * (self.line - 1) + self.code, str(self.page)).body

    def promised(self, statement: ast.stmt) -> tuple[Any] | None:
        """Return the value in the comment behind an expression, if there is one."""
        if not isinstance(statement, ast.Expr):
            return None
        rest = self.code.splitlines()[(statement.end_lineno or 0) - self.line][statement.end_col_offset or 0 :]
        match = _COMMENT.match(rest)
        try:
            return (ast.literal_eval(match[1]),) if match else None
        except (SyntaxError, ValueError):
            return None  # a remark


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(page, text.count("\n", 0, match.start(1)) + 1, match[1]) for match in _BLOCK.finditer(text)]


def pages() -> Iterator[Path]:
    """All pages with Python blocks that run here."""
    return (page for page in sorted(DOCS.rglob("*.md")) if "```python\n" in page.read_text(encoding="utf-8"))


def run(block: Block, names: dict[str, Any]) -> int:
    """Run a block; the number of values that came out as promised."""
    promised = 0
    for statement in block.statements():
        value = block.promised(statement)
        if value is None or not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), str(block.page), "exec"), names)
            continue
        actual = eval(compile(ast.Expression(statement.value), str(block.page), "eval"), names)
        where = f"{block.page.relative_to(PROJECT)}:{statement.lineno}"
        assert actual == value[0], f"{where}: promised {value[0]!r}, found {actual!r}"
        promised += 1
    return promised
