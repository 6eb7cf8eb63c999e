"""Limits of time, whatever it is that takes so long: a request past its limit gets a problem for an answer."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http import HTTPStatus
from typing import Final

from dynamodb_counters._http.problems import ProblemError

MAX_CPU_SECONDS: Final = 0.45
"""To check one request. Only a schema can take longer: some patterns never end with some texts."""

_TO_ANSWER: Final = 0.5
"""Seconds that the answer takes of the time that is left."""

_AGAIN: Final = 0.05
"""Seconds until the error is raised again: one raised where no code can catch it, as in a finalizer, is lost."""


class _OverError(BaseException):
    """No `Exception`, which the code that it interrupts might catch."""


def cpu_limit(seconds: float = MAX_CPU_SECONDS) -> AbstractContextManager[None]:
    detail = "the events take too long to check: send fewer, or shorter texts"
    # Python's regular expressions look for signals while they match.
    return _limit(signal.SIGPROF, signal.ITIMER_PROF, seconds, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)


def time_limit(seconds_left: float, detail: str) -> AbstractContextManager[None]:
    """End before the function's own timeout, which the API would answer with a bare 5xx."""
    seconds = max(_TO_ANSWER, seconds_left - _TO_ANSWER)
    return _limit(signal.SIGALRM, signal.ITIMER_REAL, seconds, HTTPStatus.SERVICE_UNAVAILABLE, detail)


@contextmanager
def _limit(number: signal.Signals, timer: int, seconds: float, status: HTTPStatus, detail: str) -> Iterator[None]:
    runs = True

    def stop(*_: object) -> None:
        if runs:
            raise _OverError

    try:
        before = signal.signal(number, stop)
    except ValueError:
        yield  # Only the main thread may handle signals; Lambda calls a handler there.
        return
    try:
        signal.setitimer(timer, seconds, _AGAIN)
        try:
            yield
        finally:
            runs = False
    except _OverError:
        runs = False  # Raised just before it was set.
        raise ProblemError(status, detail) from None
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
