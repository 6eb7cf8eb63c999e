"""Facts known only at synth: a resource's resolved properties, late texts, and checks of everything declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import jsii
from aws_cdk import CfnResource, IInspectable, IStableAnyProducer, Lazy, Stack, Token, TreeInspector
from constructs import Construct, IValidation

_CHECKS: Final = "_counters_checks"


def resolved_property(resource: CfnResource, name: str) -> Any:
    """Return a property by its camel-case name, or None."""
    # The resource's getter does not work: jsii returns an empty or broken copy of a property that CDK produces lazily.
    inspector = TreeInspector()
    # Every generated resource class is inspectable; their common base class does not declare it.
    cast(IInspectable, resource).inspect(inspector)
    return Stack.of(resource).resolve(inspector.attributes["aws:cdk:cloudformation:props"].get(name))


def late_text(produce: Callable[[], str | None]) -> str:
    """Return a token for the text that ``produce`` returns at synth."""
    return Token.as_string(late_value(produce))


def late_number(produce: Callable[[], float]) -> float:
    """Return a token for the number that ``produce`` returns at synth."""
    return Token.as_number(late_value(produce))


def late_value(produce: Callable[[], Any]) -> Any:
    """Return a token for what ``produce`` returns at synth."""
    return Lazy.any(_Late(produce))


def check_at_synth(scope: Construct, find_problem: Callable[[], str | None]) -> None:
    """Fail synth with the problem that ``find_problem`` then returns, if any."""
    # One validation per scope: each is a way through jsii and back.
    checks: _Checks | None = vars(scope).get(_CHECKS)
    if checks is None:
        checks = vars(scope)[_CHECKS] = _Checks()
        scope.node.add_validation(checks)
    checks.add(find_problem)


@jsii.implements(IStableAnyProducer)
class _Late:
    def __init__(self, produce: Callable[[], Any]) -> None:
        self._produce = produce

    def produce(self) -> Any:
        return self._produce()


@jsii.implements(IValidation)
class _Checks:
    def __init__(self) -> None:
        self._finders: list[Callable[[], str | None]] = []

    def add(self, find_problem: Callable[[], str | None]) -> None:
        self._finders.append(find_problem)

    def validate(self) -> list[str]:
        return [problem for find_problem in self._finders if (problem := find_problem()) is not None]
