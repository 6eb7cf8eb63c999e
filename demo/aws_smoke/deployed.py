"""A deployment as checks and questions see it: its outputs, its API, and how long they wait for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeVar

from demo.aws_smoke.account import Account
from demo.aws_smoke.expectations import Expectations
from demo.aws_smoke.signing import SignedApi

_Found = TypeVar("_Found")
_PAUSE_SECONDS: Final = 2.0


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
