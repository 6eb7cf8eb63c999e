"""The result of a run: a report for programs, a summary for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

    def differences(self) -> list[str]:
        return [line for finding in self.findings for line in finding.differences()]


def report(result: Result) -> dict[str, Any]:
    wrong = result.differences()
    document: dict[str, Any] = {"exact": not wrong, "differences": wrong, "seconds": round(result.seconds, 1)}
    for finding in result.findings:
        document |= finding.example.section(finding)
    return document


def summary(result: Result) -> str:
    """Return each example's lines, then every count that is wrong and what may be the cause, then the status."""
    wrong = result.differences()
    lines = [line for finding in result.findings for line in _about(finding)]
    lines += [*wrong, *([result.stalled] if result.stalled else []), *(result.limits if wrong else [])]
    status = (
        f"NOT EXACT: {len(wrong):,} differences"
        if wrong
        else f"EXACT: {result.checked:,} counts equal an independent recount"
    )
    return "\n".join([*lines, f"{status} ({result.seconds:.0f} s)"])


def _about(finding: Finding) -> Iterator[str]:
    example, account = finding.example, finding.account
    if account.total:
        withdrawn = f", {account.withdrawn:,} taken back" if account.withdrawn else ""
        accepted, again = (account.statuses[status] for status in ("accepted", "duplicate"))
        answers = f"{accepted:,} accepted, {again:,} sent twice and refused{withdrawn}"
        yield f"Sent {account.total:,} events of {example.name}: {answers}"
    else:
        yield f"Made {example.size:,} changes of {example.name}"
    yield (
        "Killed the function while it counted; the batch was delivered again"
        if finding.crashed
        else ("Killed nothing: the function was done with each batch first")
    )
    yield from example.lines(finding.actual)
    yield from map(str, finding.explained)
