"""The page `Seen on AWS`: each question with the project's assumption and what a run has seen."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Final

from demo.aws_smoke.account import Account
from demo.aws_smoke.questions.asked import A_DAY_LATER, AFTER_EVENTS, BEFORE_EVENTS

PROJECT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = PROJECT / "docs" / "seen-on-aws.md"
_NOT_YET: Final = "not yet run"
_HEAD: Final = """\
# Seen on AWS

No test of this project reaches an AWS account. `make aws-smoke` deploys a copy to yours, asks it these questions,
removes everything, and writes this page; `make aws-smoke ARGS=--costs` adds the bill of that day once Cost Explorer
knows it.
"""
_ROWS: Final = (
    *((question.text, question.assumed) for question in (*BEFORE_EVENTS, *AFTER_EVENTS)),
    *((text, assumed) for text, assumed, _ in A_DAY_LATER),
)
_RUN: Final = re.compile(r"Run on (\d{4}-\d\d-\d\d) in ([\w-]+),")
_ROW: Final = re.compile(r"^\| (.*?) \| (.*?) \| (.*) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """Answers by question, and the run that they are from."""

    origin: str = "Not yet run."
    seen: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Page:
        """Read a page; answers to questions that are asked no more, or otherwise, are dropped."""
        origin = text.removeprefix(_HEAD).strip().partition("\n")[0]
        rows = {(question, assumed): seen for question, assumed, seen in _ROW.findall(text)}
        return cls(origin, {row[0]: rows[row] for row in _ROWS if rows.get(row, _NOT_YET) != _NOT_YET})

    @property
    def run(self) -> tuple[date, str] | None:
        """Day and region of the run; None if AWS has given no answer."""
        found = _RUN.match(self.origin)
        return None if found is None else (date.fromisoformat(found[1]), found[2])

    def with_answers(self, seen: Mapping[str, str]) -> Page:
        return replace(self, seen={**self.seen, **seen})

    def text(self) -> str:
        rows = [f"| {question} | {assumed} | {self._cell(question)} |" for question, assumed in _ROWS]
        return "\n".join([_HEAD, self.origin, "", "| question | assumed | seen |", "|---|---|---|", *rows, ""])

    def _cell(self, question: str) -> str:
        return " ".join(self.seen.get(question, _NOT_YET).replace("|", "/").split())


def origin_of(account: Account, day: date) -> str:
    """The sentence that says where and when a page's answers were given."""
    if account.emulated:
        return "Recorded with an emulator: nothing on this page was seen on AWS."
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    return f"Run on {day.isoformat()} in {account.region}, of commit {described.stdout.strip() or 'unknown'}."
