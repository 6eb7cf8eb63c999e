"""The verifier's handler: it begins when its schedule says so, and reports what it has found."""

from __future__ import annotations

from functools import partial
from types import ModuleType, SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from simulation.handler_process import LAMBDA_CONTEXT
from simulation.memory.client_errors import failure
from tests.exactly_once.test_run_commands import verified, work
from tests.exactly_once.test_runs import REVENUE, Orders
from tests.exactly_once.test_verdicts import VIEWS, Site
from tests.unit.handlers.conftest import Load, Metered

__all__ = ["verified"]


@pytest.fixture
def module(load: Load) -> ModuleType:
    return load("verifier")


# The world's time is not the machine's: an invocation ends at once, or never.
CONTEXT = SimpleNamespace(**{**vars(LAMBDA_CONTEXT), "get_remaining_time_in_millis": lambda: 900_000})


def test_drift_is_metered_when_the_verification_is_complete(
    verified: Orders,
    module: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    metered: Metered,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(module, "verifier", lambda: partial(work, verified))

    module.handler({"begin": False}, CONTEXT)
    assert metered() == {}
    module.handler({"begin": True}, CONTEXT)
    assert metered() == {"Drift": 1, "GroupsUnknown": 0, "GroupsVerified": 1}
    [said] = caplog.records
    assert (said.message, vars(said)["groups"]) == ("counts have drifted", {"revenue": 1})

    verified.spoil(REVENUE, "total", -5, customer="ann")
    module.handler({"begin": True}, CONTEXT)
    assert metered() == {"Drift": 0, "GroupsUnknown": 0, "GroupsVerified": 1}


def test_groups_that_cannot_be_verified_are_metered(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, metered: Metered, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(VIEWS)
    site.view(3)
    site.expire(36)
    site.view(1)
    monkeypatch.setattr(module, "verifier", lambda: partial(work, site))
    module.handler({"begin": True}, CONTEXT)
    assert metered() == {"Drift": 0, "GroupsUnknown": 1, "GroupsVerified": 1}
    [said] = caplog.records
    assert (said.message, vars(said)["groups"]) == ("counts cannot be verified", {"views": 1})


def test_a_verification_that_cannot_be_says_why(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "verifier", lambda: partial(work, Orders(REVENUE, founds=False)))
    module.handler({"begin": True}, CONTEXT)
    [said] = caplog.messages
    assert said.startswith("nothing counts the table yet")


def test_a_verifier_without_permission_fails(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, metered: Metered
) -> None:
    """Errors of the function, and none of its invocations, have an alarm."""
    world = Orders(REVENUE, founds=False)

    def refuse(**_: object) -> None:
        raise failure("Query", "AccessDeniedException")

    monkeypatch.setattr(world.table, "query", refuse)
    monkeypatch.setattr(module, "verifier", lambda: partial(work, world))
    for event in ({"begin": True}, {"begin": False}):
        with pytest.raises(ClientError, match="AccessDenied"):
            module.handler(event, LAMBDA_CONTEXT)
    assert metered() == {}
