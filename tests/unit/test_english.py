"""Sentences of pages, docstrings, messages, comments and test names begin with a noun of the project."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

_PROJECT: Final = Path(__file__).parents[2]
_ROOTS: Final = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs",
    "benchmarks",
    "lambdas",
    "infra",
    "scripts",
    "demo",
    "simulation",
    "tests",
)
"""Files, and folders with all their Markdown and Python; a new one is checked once its path is here."""
_EXCEPT: Final = ("tests/unit/test_english.py",)

_START: Final = r"(?:\A|\n\s*\n|\n[^\n]*\w : [^\n]*\n\s*|\n\s*(?:[-*+>#]+|\d+\.)\s|[.!?:|][\"”)*_`]*\s)[\s\"“*_\[(#]*"
_PERSON: Final = r"(?:you|us|users?|people|(?:a|an|the|your) (?:user|person|reader|caller|client|operator|model))"
_FORBIDDEN: Final = (
    re.compile(_START + r"(What|Whatever|Whoever|Of|That|So that)\b"),
    re.compile(rf"\b(?:tell|tells|telling|told)\b(?! {_PERSON}\b)", re.IGNORECASE),
    re.compile(r"\b(?:nobody|somebody|shall|anew|beside|thing that is)\b", re.IGNORECASE),
)
_NOT_PROSE: Final = re.compile(r"^ *(```|~~~).*?^ *\1$|<!--.*?-->|\]\([^)]*\)|`[^`]*`", re.MULTILINE | re.DOTALL)


def _files() -> Iterator[Path]:
    for root in (_PROJECT / name for name in _ROOTS):
        found = [root] if root.is_file() else [*root.rglob("*.md"), *root.rglob("*.py")]
        yield from (file for file in found if str(file.relative_to(_PROJECT)) not in _EXCEPT)


def _texts(file: Path) -> Iterator[str]:
    """Yield a page as one text; a module's strings, comments and test names, each as its own."""
    if file.suffix == ".md":
        yield _NOT_PROSE.sub("`", file.read_text())
        return
    with file.open("rb") as lines:
        for token in tokenize.tokenize(lines.readline):
            if token.type in {tokenize.STRING, tokenize.COMMENT}:
                yield _NOT_PROSE.sub("`", token.string.lstrip("rfbRFB").strip("\"'# "))
            elif token.type == tokenize.NAME and token.string.startswith("test_"):
                yield token.string.removeprefix("test_").capitalize().replace("_", " ")


def offenses(file: Path) -> list[str]:
    found = [(text, match) for text in _texts(file) for words in _FORBIDDEN for match in words.finditer(text)]
    return [text[max(match.start() - 20, 0) : match.end() + 40].strip() for text, match in found]


def test_sentences_begin_with_a_noun() -> None:
    assert {str(file.relative_to(_PROJECT)): found for file in _files() if (found := offenses(file))} == {}


@pytest.mark.parametrize("words", ["What is late.", "Late. Of these", "- So that", "A count tells it", "Nobody reads"])
def test_forbidden_words_are_found(words: str, tmp_path: Path) -> None:
    (page := tmp_path / "page.md").write_text(f"# A page\n\n{words}\n")
    assert len(offenses(page)) == 1
