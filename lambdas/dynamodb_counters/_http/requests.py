"""Requests as API Gateway passes them to a function (payload format 2.0): JSON, claims, problems, limits of time.

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
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal, InvalidOperation
from http import HTTPStatus
from typing import Any, Final, NoReturn

from dynamodb_counters._items.conversions import base64_text, key_text
from dynamodb_counters.errors import CountersError, InvalidArgumentError

MAX_LEVELS: Final = 34
"""An array, an event in it, and the 32 levels that DynamoDB nests below an attribute."""

MAX_NUMBER: Final = 400
"""Characters of a number; DynamoDB's longest takes 170."""

# `json` cannot write a Decimal: each is written as a string with a secret mark, and the quotes are stripped afterwards.
_MARK: Final = secrets.token_hex(12)
_MARKED: Final = re.compile(f'"{_MARK}([^"]*)"')

_PARENTHESES: Final = bytes.maketrans(b"[]{}", b"()()")
_TO_OUTLINE: Final = bytes(set(range(256)) - set(b"[]{},"))

PROBLEM_JSON: Final = "application/problem+json"
# Browsers send beacons, and bodies without an explicit type, as plain text.
JSON_TYPES: Final = ("application/json", "text/plain")
MAX_BODY_BYTES: Final = 1_000_000
"""Unless an ingest says otherwise; as much as a line of a file of events may have."""

MAX_VALUES: Final = 50_000
"""Values in a document, numbers and texts as well as what encloses them: each costs time, however few its bytes."""

# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
_PLACES: Final = {"claims": ("jwt", "claims"), "lambda": ("lambda",), "iam": ("iam",)}
MAX_CPU_SECONDS: Final = 0.45
"""To check one request. Only a schema can take longer: some patterns never end with some texts."""

_TO_ANSWER: Final = 0.5
"""Seconds that the answer takes of the time that is left."""

_AGAIN: Final = 0.05
"""Seconds until the error is raised again: one raised where no code can catch it, as in a finalizer, is lost."""


def read_json(text: str, *, max_levels: int = MAX_LEVELS, max_values: int | None = None) -> Any:
    """Parse JSON; a ValueError for NaN, infinities, duplicate members, huge numbers, too many levels or values."""
    _require_modest(text, max_levels, max_values)
    return json.loads(text, parse_float=_fraction, parse_constant=_reject_constant, object_pairs_hook=_unique_members)


def write_json(value: Any) -> str:
    """Write compact ASCII JSON with every digit of a Decimal."""
    return _MARKED.sub(r"\1", json.dumps(value, separators=(",", ":"), default=_mark))


def _require_modest(text: str, max_levels: int, max_values: int | None) -> None:
    """Judge a document by its text, before anything walks it: the parser recurses, as does what reads its result."""
    # Strings do not count. In a text that is not JSON, all is judged right up to where the parser stops.
    # Without escapes, every second part between quotes is outside of strings.
    plain = text.encode(errors="replace").replace(rb"\\", b"").replace(rb"\"", b"")
    outline = b"".join(plain.split(b'"')[::2]).translate(_PARENTHESES, _TO_OUTLINE)
    brackets = outline.replace(b",", b"")
    for _ in range(max_levels):
        brackets = brackets.replace(b"()", b"")
    # Brackets that are left do not match, or enclose more than the levels that were taken off.
    if b"()" in brackets or brackets.count(b"(") > max_levels:
        raise ValueError(f"nested deeper than {max_levels} levels")
    # A value is the first of its container, or it follows a comma.
    if max_values is not None and (found := outline.count(b"(") + outline.count(b",") + 1) > max_values:
        raise ValueError(f"about {found} values; limit: {max_values}")


def _fraction(text: str) -> Decimal:
    if len(text) > MAX_NUMBER:
        raise ValueError(f"a number of {len(text)} characters; limit: {MAX_NUMBER}")
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = None
    # Written without an exponent, as in a key, 1E+999999999 would take a gigabyte.
    if number is None or abs(number.adjusted()) > MAX_NUMBER:
        raise ValueError(f"{text:.40} has too large an exponent")
    return number


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


def headers_of(event: Mapping[str, Any]) -> dict[str, str]:
    return {name.lower(): value for name, value in event["headers"].items()}


def media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def body_text(event: Mapping[str, Any], max_bytes: int, content_types: Sequence[str] = JSON_TYPES) -> str:
    if (content_type := media_type(headers_of(event))) not in content_types:
        detail = f"invalid Content-Type {content_type!r:.80}: expected {' or '.join(content_types)}"
        raise ProblemError(detail, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    body = event.get("body") or ""
    try:
        data = b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
        text = data.decode()
    except ValueError:  # Errors of base64 and of Unicode, too.
        raise ProblemError("the body is not valid UTF-8") from None
    if len(data) > max_bytes:
        raise ProblemError(f"the body has {len(data)} bytes; limit: {max_bytes}", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return text


def parse_body(text: str) -> Any:
    try:
        return read_json(text, max_values=MAX_VALUES)
    except ValueError as error:
        raise ProblemError(f"the body is not valid JSON within the limits: {error}") from None


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


def filled_in(values: Mapping[str, Any], bound: Mapping[str, str]) -> dict[str, Any]:
    """The values with the caller's own where they leave one out."""
    filled = {**bound, **values}
    require_own(filled, bound)
    return filled


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
        raise ProblemError(detail, status) from None
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
