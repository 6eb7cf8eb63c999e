"""The verifier's handler: it begins when its schedule says so, and reports what it has found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from simulation.handler_process import LAMBDA_CONTEXT
from simulation.memory.client_errors import failure
from simulation.world import World
from tests.exactly_once.test_run_commands import verified, work
from tests.exactly_once.test_runs import REVENUE, Orders
from tests.exactly_once.test_verification import VIEWS, Site
from tests.unit.handlers.conftest import Load, Metered

__all__ = ["verified"]


# The world's time is not the machine's: an invocation ends at once, or never.
CONTEXT = SimpleNamespace(**{**vars(LAMBDA_CONTEXT), "get_remaining_time_in_millis": lambda: 900_000})


Verify = Callable[..., None]


@pytest.fixture
def verify(load: Load, monkeypatch: pytest.MonkeyPatch) -> Verify:
    """Have the schedule invoke the handler of a world."""
    module = load("verifier")

    def verify(world: World, *, begin: bool = True) -> None:
        monkeypatch.setattr(module, "verifier", lambda: partial(work, world))
        module.handler({"begin": begin}, CONTEXT)

    return verify


def test_drift_is_metered_when_the_verification_is_complete(
    verified: Orders, verify: Verify, metered: Metered, caplog: pytest.LogCaptureFixture
) -> None:
    verify(verified, begin=False)
    assert metered() == {}
    verify(verified)
    assert metered() == {"Drift": 1, "GroupsUnknown": 0, "GroupsVerified": 1}
    [record] = caplog.records
    assert (record.message, vars(record)["groups"]) == ("counts have drifted", {"revenue": 1})

    verified.spoil(REVENUE, "total", -5, customer="ann")
    verify(verified)
    assert metered() == {"Drift": 0, "GroupsUnknown": 0, "GroupsVerified": 1}


def test_groups_that_cannot_be_verified_are_metered(
    verify: Verify, metered: Metered, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(VIEWS)
    site.view(3)
    site.expire(36)
    site.view(1)
    verify(site)
    assert metered() == {"Drift": 0, "GroupsUnknown": 1, "GroupsVerified": 1}
    [record] = caplog.records
    assert (record.message, vars(record)["groups"]) == ("counts cannot be verified", {"views": 1})


def test_a_verification_that_cannot_be_says_why(verify: Verify, caplog: pytest.LogCaptureFixture) -> None:
    verify(Orders(REVENUE, founds=False))
    [message] = caplog.messages
    assert message.startswith("nothing counts the table yet")


def test_a_verifier_without_permission_fails(verify: Verify, monkeypatch: pytest.MonkeyPatch, metered: Metered) -> None:
    """Errors of the function, and none of its invocations, have an alarm."""
    world = Orders(REVENUE, founds=False)

    def refuse(**_: object) -> None:
        raise failure("Query", "AccessDeniedException")

    monkeypatch.setattr(world.table, "query", refuse)
    for begin in (True, False):
        with pytest.raises(ClientError, match="AccessDenied"):
            verify(world, begin=begin)
    assert metered() == {}
