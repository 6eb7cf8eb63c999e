"""Requests and answers as API Gateway has them (payload format 2.0): JSON, claims, problems, limits of time.

The path of a claim is ``claims.NAME`` for a JSON Web Token, ``lambda.NAME`` for the context of a Lambda authorizer,
``iam.NAME`` for IAM; a tenant's fields are bound to such claims. JSON keeps every digit: fractions are `Decimal`;
binary is written as base64, a set as a sorted array. A request past its limit of time gets a problem for an answer.
"""

from __future__ import annotations

import json
import re
import secrets
import signal
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from http import HTTPStatus
from itertools import accumulate
from typing import Any, Final, NoReturn

from dynamodb_counters._items.conversions import base64_text, key_text
from dynamodb_counters.errors import CountersError, InvalidArgumentError

MAX_LEVELS: Final = 34
"""An array, an event in it, and the 32 levels that DynamoDB nests below an attribute."""

MAX_VALUES: Final = 50_000
"""Values in a document, numbers and texts as well as what encloses them: each costs time, however few its bytes."""

MAX_NUMBER: Final = 400
"""Digits of a fraction, and its exponent; DynamoDB's longest takes 170. In a key, it has no exponent."""

_NUMBERS: Final = Context(
    prec=MAX_NUMBER, Emin=-MAX_NUMBER, Emax=MAX_NUMBER, traps=[Inexact, InvalidOperation, Overflow]
)
_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BRACKET: Final = re.compile(r"[\[\]{}]")

# `json` cannot write a Decimal: each is written as a string with a secret mark, and the quotes are stripped afterwards.
_MARK: Final = secrets.token_hex(12)
_MARKED: Final = re.compile(f'"{_MARK}([^"]*)"')

JSON: Final = "application/json"
PROBLEM_JSON: Final = "application/problem+json"
NO_STORE: Final = "no-store"
MAX_BODY_BYTES: Final = 1_000_000
"""Unless an ingest says otherwise; as much as a line of a file of events may have."""

# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
_PLACES: Final = {"claims": ("jwt", "claims"), "lambda": ("lambda",), "iam": ("iam",)}
MAX_CPU_SECONDS: Final = 0.45
"""To check one request. Only a schema can take longer: some patterns never end with some texts."""

_TO_ANSWER: Final = 0.5
"""Seconds that the answer takes of the time that is left."""

_AGAIN: Final = 0.05
"""Seconds until the error is raised again: one raised where no code can catch it, as in a finalizer, is lost."""


def read_json(text: str) -> Any:
    """Parse JSON; a ValueError for NaN, infinities, duplicate members, huge numbers, too many levels or values."""
    # Judged by its text, before anything walks it: the parser recurses, as does what reads its result.
    outline = _STRING.sub("", text)
    levels = accumulate(1 if bracket in "[{" else -1 for bracket in _BRACKET.findall(outline))
    if max(levels, default=0) > MAX_LEVELS:
        raise ValueError(f"nested deeper than {MAX_LEVELS} levels")
    # A value is the first of its container, or it follows a comma.
    if (values := sum(map(outline.count, "[{,")) + 1) > MAX_VALUES:
        raise ValueError(f"about {values} values; limit: {MAX_VALUES}")
    return json.loads(text, parse_float=_fraction, parse_constant=_reject_constant, object_pairs_hook=_unique_members)


def write_json(value: Any) -> str:
    """Write compact ASCII JSON with every digit of a Decimal."""
    return _MARKED.sub(r"\1", json.dumps(value, separators=(",", ":"), default=_mark))


def _fraction(text: str) -> Decimal:
    try:
        return _NUMBERS.create_decimal(text)
    except ArithmeticError:
        raise ValueError(f"{text:.40} has more than {MAX_NUMBER} digits, or as large an exponent") from None


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object has a duplicate member")
    return members


def _mark(value: object) -> object:
    if isinstance(value, Decimal):
        return f"{_MARK}{value}"
    if isinstance(value, bytes | bytearray):
        return base64_text(value)
    if isinstance(value, AbstractSet):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


class ProblemError(CountersError):
    """A request that gets an error response; each of `errors` has a ``detail`` and the ``index`` of an event."""

    def __init__(self, detail: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST, errors: Sequence[Any] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.errors = list(errors)

    @property
    def body(self) -> dict[str, Any]:
        problem = {"type": "about:blank", "title": self.status.phrase, "status": int(self.status), "detail": str(self)}
        return problem | {"errors": self.errors} if self.errors else problem


def body_text(request: Mapping[str, Any], max_bytes: int) -> str:
    body = request.get("body") or ""
    try:
        data = b64decode(body, validate=True) if request.get("isBase64Encoded") else body.encode()
        text = data.decode()
    except ValueError:  # Errors of base64 and of Unicode, too.
        raise ProblemError("the body is not valid UTF-8") from None
    if len(data) > max_bytes:
        raise ProblemError(f"the body has {len(data)} bytes; limit: {max_bytes}", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return text


def parse_json(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError as error:
        raise ProblemError(f"the body is not valid JSON within the limits: {error}") from None


def answered(answer: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the answer, or the problem that it raises."""
    try:
        return answer()
    except (ProblemError, InvalidArgumentError) as error:
        problem = error if isinstance(error, ProblemError) else ProblemError(str(error))
    retry = {"Retry-After": "1"} if problem.status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return response(problem.status, PROBLEM_JSON, write_json(problem.body), {"Cache-Control": NO_STORE, **retry})


def json_response(
    body: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK, cache_control: str = NO_STORE
) -> dict[str, Any]:
    return response(status, JSON, write_json(body), {"Cache-Control": cache_control, "Vary": "Authorization"})


def response(status: HTTPStatus, kind: str, body: str, headers: Mapping[str, str]) -> dict[str, Any]:
    return {"statusCode": int(status), "headers": {"Content-Type": kind, **headers}, "body": body}


def bound_values(tenant: Mapping[str, str], event: Mapping[str, Any]) -> dict[str, str]:
    """The caller's own value of each bound field; a problem of status 403 if the request lacks a claim."""
    bound = {}
    for field, path in tenant.items():
        kind, _, name = path.partition(".")
        found: Any = event.get("requestContext")
        for member in ("authorizer", *_PLACES[kind], name):
            found = found.get(member) if isinstance(found, Mapping) else None
        if not (text := _claimed(path, found)):
            raise ProblemError(f"missing claim {path!r}: expected a string or number", HTTPStatus.FORBIDDEN)
        bound[field] = text
    return bound


def require_own(values: object, bound: Mapping[str, str]) -> None:
    """Refuse values that are not the caller's own, by status 403; what is no mapping is left to other checks."""
    for field, own in bound.items():
        if isinstance(values, Mapping) and _claimed(field, values.get(field)) != own:
            detail = f"invalid {field}: expected the value that the caller's claim holds"
            raise ProblemError(detail, HTTPStatus.FORBIDDEN)


def _claimed(name: str, value: object) -> str | None:
    """As it stands in a key, where the number 1 and the string "1" are the same."""
    try:
        return key_text(name, value)
    except InvalidArgumentError:
        return None


class _OverError(BaseException):
    """No `Exception`, which the code that it interrupts might catch."""


def cpu_limit(seconds: float = MAX_CPU_SECONDS) -> AbstractContextManager[None]:
    detail = "the events take too long to check: send fewer, or shorter texts"
    # Python's regular expressions look for signals while they match.
    return _limit(signal.ITIMER_PROF, seconds, ProblemError(detail, HTTPStatus.REQUEST_ENTITY_TOO_LARGE))


def time_limit(seconds_left: float, detail: str) -> AbstractContextManager[None]:
    """End before the function's own timeout, which the API would answer with a bare 5xx."""
    seconds = max(_TO_ANSWER, seconds_left - _TO_ANSWER)
    return _limit(signal.ITIMER_REAL, seconds, ProblemError(detail, HTTPStatus.SERVICE_UNAVAILABLE))


@contextmanager
def _limit(timer: int, seconds: float, problem: ProblemError) -> Iterator[None]:
    number = signal.SIGPROF if timer == signal.ITIMER_PROF else signal.SIGALRM
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
        raise problem from None
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
