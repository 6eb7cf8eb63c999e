"""HTTP errors as problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from dynamodb_counters.errors import CountersError

PROBLEM_JSON: Final = "application/problem+json"


class ProblemError(CountersError):
    """A request that gets an error response; each of `errors` has a ``detail`` and the ``index`` of an event."""

    def __init__(self, status: HTTPStatus, detail: str, errors: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.errors = list(errors)

    @property
    def body(self) -> dict[str, Any]:
        problem = {"type": "about:blank", "title": self.status.phrase, "status": int(self.status), "detail": str(self)}
        return problem | {"errors": self.errors} if self.errors else problem


def bad_request(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.BAD_REQUEST, detail)
