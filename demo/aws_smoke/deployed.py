"""A deployment as checks and questions see it: its outputs, its API, its logs, and how long they wait for each."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar

from demo.aws_smoke.account import Account
from demo.aws_smoke.expectations import Expectations
from demo.aws_smoke.signing import SignedApi

_Found = TypeVar("_Found")
_PAUSE_SECONDS: Final = 2.0


class UnansweredError(Exception):
    """A question has no answer here; the message says why."""


@dataclass(frozen=True)
class Deployed:
    """A deployment to check: where it is, its outputs, and where they note what they find."""

    account: Account
    stack: str
    outputs: Mapping[str, str]
    api: SignedApi
    expectations: Expectations
    patience_seconds: float

    def until(
        self, read: Callable[[], _Found], enough: Callable[[_Found], bool], seconds: float | None = None
    ) -> _Found:
        """Read until it is enough, or time is up; return what was read last."""
        deadline = time.monotonic() + (self.patience_seconds if seconds is None else seconds)
        while not enough(found := read()) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
        return found

    def eventually(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        return self.until(condition, bool, seconds)

    def settle(self, what: str, expected: object, read: Callable[[], object]) -> None:
        """Read until it is as expected, or for as long as anybody waits: reads follow writes, but not at once."""
        self.expectations.check(what, expected, self.until(read, lambda found: found == expected))

    def site(self) -> int:
        """All views counted so far; -1 while no API answers."""
        status, found = self.api.get("/v1/aggregates/site")
        return int(found["measures"]["site_views"]) if status == HTTPStatus.OK else -1

    def not_emulated(self, reason: str) -> None:
        """Raise UnansweredError with a reason if an emulator would have to answer."""
        if self.account.emulated:
            raise UnansweredError(f"the emulator {reason}")

    def logged(self, group: str) -> Iterator[tuple[float, str]]:
        """Yield the lines of a log group with their times, in seconds since 1970."""
        pages = self.account.client("logs").get_paginator("filter_log_events").paginate(logGroupName=group)
        for page in pages:
            yield from ((line["timestamp"] / 1000, line["message"]) for line in page["events"])

    def printed(self) -> list[tuple[float, dict[str, Any]]]:
        """Lines that the probe's functions have printed, in order."""
        lines = self.logged(self.outputs["ProbeLogs"])
        return sorted(((at, json.loads(line)) for at, line in lines if line.startswith("{")), key=lambda one: one[0])
