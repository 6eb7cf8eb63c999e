"""Rules: what AWS documents and a template shows, each with the page that says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.gate.template import Template

Check: TypeAlias = Callable[[Template], Iterator[str]]

_DOCS: Final = "https://docs.aws.amazon.com/"


@dataclass(frozen=True)
class Rule:
    """Finds what breaks it; `page` says why it holds on AWS."""

    name: str
    page: str
    check: Check

    def findings(self, template: Template) -> list[str]:
        return [f"{template.name}: {finding} ({self.name}, {self.page})" for finding in self.check(template)]


RULES: Final[dict[str, Rule]] = {}


def rule(page: str) -> Callable[[Check], Check]:
    """Make a rule of a check; `page` is the path of AWS's documentation."""

    def register(check: Check) -> Check:
        name = str(check.__name__)
        assert name not in RULES, f"two rules {name}"
        RULES[name] = Rule(name, _DOCS + page, check)
        return check

    return register
