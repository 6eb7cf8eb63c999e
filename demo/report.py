"""The result of a run: a report for programs, a summary for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from demo.example import Finding


@dataclass(frozen=True)
class Result:
    """The findings, the seconds it all took, and why waiting for the counts ended, if nothing moved."""

    findings: Sequence[Finding]
    seconds: float
    stalled: str | None = None
    limits: Sequence[str] = ()
    """Limits that the functions and clients met."""

    @property
    def checked(self) -> int:
        return sum(finding.checked for finding in self.findings)

    def leading_first(self) -> list[Finding]:
        return sorted(self.findings, key=lambda finding: not finding.example.leading)

    def differences(self) -> list[str]:
        return [line for finding in self.findings for line in finding.differences()]


def report(result: Result) -> dict[str, Any]:
    wrong = result.differences()
    document: dict[str, Any] = {"exact": not wrong, "differences": wrong, "seconds": round(result.seconds, 1)}
    for finding in result.leading_first():
        section = finding.example.section(finding)
        document |= section if finding.example.leading else {finding.example.name: section}
    return document


def summary(result: Result) -> str:
    """The summary: each example's lines, then every count that is wrong and what may be the cause, then the verdict."""
    wrong = result.differences()
    lines = [
        "",
        *(line for finding in result.leading_first() for line in finding.example.lines(finding)),
        "explained, the largest group of each declaration:",
        *(f"  {one}" for finding in result.leading_first() for one in finding.explained),
        f"events sent            {_each(result, lambda finding: finding.account.sent)}",
        f"duplicates rejected    {_each(result, lambda finding: finding.account.statuses['duplicate'])}",
        "",
        *wrong,
        *([result.stalled] if result.stalled else []),
        *(result.limits if wrong else []),
    ]
    verdict = f"NOT EXACT: {len(wrong):,} differences" if wrong else f"EXACT: all {result.checked:,} counts are right"
    return "\n".join([*lines, f"{verdict} ({result.seconds:.0f} s)"])


def _each(result: Result, number: Callable[[Finding], int]) -> str:
    return ", ".join(f"{finding.example.name}: {number(finding):,}" for finding in result.findings)
