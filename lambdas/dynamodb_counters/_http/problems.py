"""Errors as HTTP answers say them: problem details of RFC 9457."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from dynamodb_counters.errors import CountersError

PROBLEM_JSON: Final = "application/problem+json"


class ProblemError(CountersError):
    """A request that is not served as it is.

    Parameters
    ----------
    status : HTTPStatus
        The answer's status.
    detail : str
        What is wrong with this request, for a person.
    errors : sequence of mapping, optional
        What is wrong with its parts: each has ``detail``, and where there are many events the ``index`` of one.

    Examples
    --------
    >>> ProblemError(HTTPStatus.NOT_FOUND, "no aggregate 'x'").body["title"]
    'Not Found'
    """

    def __init__(self, status: HTTPStatus, detail: str, errors: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.errors = list(errors)

    @property
    def body(self) -> dict[str, Any]:
        """The members of the problem document."""
        known = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": int(self.status),
            "detail": str(self),
        }
        return known | {"errors": self.errors} if self.errors else known


def refused(detail: str) -> ProblemError:
    """Make the problem of a request that asks for something impossible.

    Parameters
    ----------
    detail : str
        What is wrong.

    Returns
    -------
    ProblemError
        To be raised.
    """
    return ProblemError(HTTPStatus.BAD_REQUEST, detail)
