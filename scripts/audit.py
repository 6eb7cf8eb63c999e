"""Asks for known vulnerabilities of all that is locked: `python -m scripts.audit`.

A finding fails. A service that does not answer is reported and tolerated: a build must not depend on it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_PROJECT: Final = Path(__file__).resolve().parents[1]
_MAX_SECONDS: Final = 120
_NO_ANSWER: Final = re.compile(
    r"(?i)connect|timed? ?out|unreachable|resolution|getaddrinfo|ENOTFOUND|EAI_AGAIN|ECONN|audit endpoint|\b50[0-4]\b"
)


class NoAnswerError(Exception):
    """The service that knows about vulnerabilities did not answer."""


@dataclass(frozen=True)
class Audit:
    """A command that prints its findings as JSON, and how they are read."""

    subject: str
    command: Sequence[str]
    findings: Callable[[dict[str, Any]], list[str]]


@dataclass(frozen=True)
class Printed:
    """Output of a command, on standard output and on standard error."""

    output: str
    errors: str


def of_python(document: dict[str, Any]) -> list[str]:
    """Read what pip-audit found."""
    packages = document["dependencies"]
    skipped = [package for package in packages if "skip_reason" in package]
    if len(skipped) == len(packages):
        raise NoAnswerError(
            f"none of {len(packages)} packages is known: {skipped[0]['skip_reason'] if skipped else ''}"
        )
    unknown = [f"{package['name']} was not audited: {package['skip_reason']}" for package in skipped]
    return unknown + [
        f"{package['name']} {package['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'none'}"
        for package in packages
        for found in package.get("vulns", ())
    ]


def of_node(document: dict[str, Any]) -> list[str]:
    """Read what npm audit found."""
    if "vulnerabilities" not in document:
        problem = str(document.get("message") or document.get("error"))
        if "statusCode" in document or _NO_ANSWER.search(problem):
            raise NoAnswerError(problem)
        return [f"the audit failed: {problem}"]
    return [f"{name} {found['range']}: {found['severity']}" for name, found in document["vulnerabilities"].items()]


AUDITS: Final = (
    *(
        Audit(
            lock,
            (
                *(sys.executable, "-m", "pip_audit", "-r", lock),
                *("--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off"),
            ),
            of_python,
        )
        for lock in ("requirements.txt", "requirements-release.txt")
    ),
    Audit("package-lock.json", ("npm", "audit", "--json"), of_node),
)


def run(command: Sequence[str]) -> Printed:
    """Run a command of the project."""
    try:
        done = subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, check=False, timeout=_MAX_SECONDS)
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"{command[0]} timed out after {_MAX_SECONDS} s") from None
    return Printed(done.stdout, done.stderr)


def main(run: Callable[[Sequence[str]], Printed] = run) -> int:
    """Run all audits; 1 if one found something or failed."""
    failed = False
    for audit in AUDITS:
        try:
            findings = _findings(audit, run(audit.command))
        except NoAnswerError as error:
            print(f"audit: {audit.subject} was NOT audited, the service does not answer: {error}")
            continue
        failed |= bool(findings)
        print(f"audit: {audit.subject}: {'; '.join(findings) or 'no known vulnerability'}")
    return int(failed)


def _findings(audit: Audit, printed: Printed) -> list[str]:
    try:
        document = json.loads(printed.output)
    except ValueError:
        last = (printed.errors.strip() or "it printed nothing").splitlines()[-1]
        if _NO_ANSWER.search(printed.errors):
            raise NoAnswerError(last) from None
        return [f"the audit failed: {last}"]
    return audit.findings(document)


if __name__ == "__main__":
    raise SystemExit(main())
