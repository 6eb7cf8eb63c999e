"""A budget of CPU time: what costs more is given up, whatever it is that takes so long."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, NoReturn

from dynamodb_counters._http.problems import ProblemError

MAX_CPU_SECONDS: Final = 0.45
"""To check one request. Only a schema can take longer: some patterns never end with some texts."""


class _SpentError(BaseException):
    """No `Exception`, which the code that it interrupts might catch."""


@contextmanager
def cpu_budget(seconds: float = MAX_CPU_SECONDS) -> Iterator[None]:
    """Refuse the request once its thread, the main one, has spent that much; elsewhere there is no limit."""
    try:
        # Python's regular expressions look for signals while they match.
        before = signal.signal(signal.SIGPROF, _stop)
    except ValueError:
        yield  # Only the main thread may handle signals; Lambda calls a handler there.
        return
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except _SpentError:
        detail = "the events take too long to check: send fewer, or shorter texts"
        raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail) from None
    finally:
        signal.signal(signal.SIGPROF, before)


def _stop(*_: object) -> NoReturn:
    raise _SpentError
