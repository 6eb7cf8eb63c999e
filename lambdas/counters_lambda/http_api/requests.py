"""Requests and answers as API Gateway has them (payload format 2.0): JSON, claims, problems, limits of time, events.

The path of a claim is ``claims.NAME`` for a JSON Web Token, ``lambda.NAME`` for the context of a Lambda authorizer,
``iam.NAME`` for IAM; a tenant's fields are bound to such claims. JSON keeps every digit: fractions are `Decimal`;
binary is written as base64, a set as a sorted array. A request past its limit of time gets a problem for an answer.
Posted events are JSON or CloudEvents, one or up to 500; they are validated, then packed into queue messages.
"""

from __future__ import annotations

import json
import re
import secrets
import signal
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from http import HTTPStatus
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.event_attributes import Attribute, attributes_of, canonical_values
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._items.conversions import base64_text, event_seconds, key_text
from dynamodb_counters._writes.accept import typed_item
from dynamodb_counters.errors import CountersError, InvalidArgumentError, MalformedImageError

if TYPE_CHECKING:
    from counters_lambda.http_api.json_schema import SchemaCheck

MAX_LEVELS: Final = 34  # An array, an event in it, and the 32 levels that DynamoDB nests below an attribute.
_MAX_VALUES: Final = 50_000  # In a document, with what encloses them: each costs time, however few its bytes.
_MAX_NUMBER: Final = 400  # Digits of a fraction, and its exponent; DynamoDB's longest takes 170. Keys have no exponent.
_TRAPS: Final = [Inexact, InvalidOperation, Overflow]
_NUMBERS: Final = Context(prec=_MAX_NUMBER, Emin=-_MAX_NUMBER, Emax=_MAX_NUMBER, traps=_TRAPS)
_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BRACKET: Final = re.compile(r"[\[\]{}]")
# `json` cannot write a Decimal: each is written as a string with a secret mark, and the quotes are stripped afterwards.
_MARK: Final = secrets.token_hex(12)
_MARKED: Final = re.compile(f'"{_MARK}([^"]*)"')

JSON: Final = "application/json"
PROBLEM_JSON: Final = "application/problem+json"
NO_STORE: Final = "no-store"
MAX_BODY_BYTES: Final = 1_000_000  # Unless an ingest says otherwise; as much as a line of a file of events may have.

# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
_PLACES: Final = {"claims": ("jwt", "claims"), "lambda": ("lambda",), "iam": ("iam",)}
_MAX_CPU_SECONDS: Final = 0.45  # To check a request. Only a schema takes longer: some patterns never end on some texts.
_TO_ANSWER: Final = 0.5  # Seconds that the answer takes of the time that is left.
_AGAIN: Final = 0.05  # Seconds until it is raised again: one where no code can catch it, as in a finalizer, is lost.
_MAX_EVENTS: Final = 500
_MAX_MESSAGE_BYTES: Final = 200_000  # Below the 262,144 bytes that every SQS queue takes.
_MAX_REASON: Final = 500
# https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
_STRUCTURED: Final = "application/cloudevents+json"
_BATCHED: Final = "application/cloudevents-batch+json"
# Browsers send beacons, and bodies without an explicit type, as plain text.
_CONTENT_TYPES: Final = (JSON, "text/plain", _STRUCTURED, _BATCHED)
_ENVELOPE: Final = frozenset(("specversion", "id", "source", "type", "data"))
_TEXT: Final = Attribute(str, min_length=1)
_REQUIRED: Final = attributes_of({"specversion": Literal["1.0"], "id": _TEXT, "source": _TEXT, "type": _TEXT})


def read_json(text: str) -> Any:
    """Parse JSON; a ValueError for NaN, infinities, duplicate members, huge numbers, too many levels or values."""
    # Judged by its text, before anything walks it: the parser recurses, as does what reads its result.
    outline = _STRING.sub("", text)
    levels = accumulate(1 if bracket in "[{" else -1 for bracket in _BRACKET.findall(outline))
    if max(levels, default=0) > MAX_LEVELS:
        raise ValueError(f"nested deeper than {MAX_LEVELS} levels")
    # A value is the first of its container, or it follows a comma.
    if (values := sum(map(outline.count, "[{,")) + 1) > _MAX_VALUES:
        raise ValueError(f"about {values} values; limit: {_MAX_VALUES}")
    return json.loads(text, parse_float=_fraction, parse_constant=_reject_constant, object_pairs_hook=_unique_members)


def write_json(value: Any) -> str:
    """Write compact ASCII JSON with every digit of a Decimal."""
    return _MARKED.sub(r"\1", json.dumps(value, separators=(",", ":"), default=_mark))


def _fraction(text: str) -> Decimal:
    try:
        return _NUMBERS.create_decimal(text)
    except ArithmeticError:
        raise ValueError(f"{text:.40} has more than {_MAX_NUMBER} digits, or as large an exponent") from None


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
        self.status, self.errors = status, list(errors)


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
    status, errors = problem.status, {"errors": problem.errors} if problem.errors else {}
    body = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": str(problem), **errors}
    more = {HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": "1"}, HTTPStatus.METHOD_NOT_ALLOWED: {"Allow": "POST"}}
    return response(status, PROBLEM_JSON, write_json(body), {"Cache-Control": NO_STORE, **more.get(status, {})})


def json_response(body: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK, cache: str = NO_STORE) -> dict[str, Any]:
    return response(status, JSON, write_json(body), {"Cache-Control": cache, "Vary": "Authorization"})


def response(status: HTTPStatus, kind: str, body: str, headers: Mapping[str, str]) -> dict[str, Any]:
    return {"statusCode": int(status), "headers": {"Content-Type": kind, **headers}, "body": body}


def bound_values(tenant: Mapping[str, str], event: Mapping[str, Any]) -> dict[str, str]:
    """Return the caller's own value of each bound field; a problem of status 403 if the request lacks a claim."""
    bound = {}
    for field, path in tenant.items():
        kind, _, name = path.partition(".")
        value: Any = event.get("requestContext")
        for member in ("authorizer", *_PLACES[kind], name):
            value = value.get(member) if isinstance(value, Mapping) else None
        if not (text := _claimed(path, value)):
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
    """Return a value as it stands in a key, where the number 1 and the string "1" are the same."""
    try:
        return key_text(name, value)
    except InvalidArgumentError:
        return None


class _OverError(BaseException):
    """No `Exception`, which the code that it interrupts might catch."""


def cpu_limit(seconds: float = _MAX_CPU_SECONDS) -> AbstractContextManager[None]:
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


def parse_events(text: str) -> list[Any]:
    document = parse_json(text)
    return document if isinstance(document, list) else [document]


def posted_events(request: Mapping[str, Any], max_bytes: int) -> tuple[list[Any], bool]:
    """Return the unvalidated events of a request, and whether they are CloudEvents."""
    headers = {name.lower(): value for name, value in request["headers"].items()}
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    is_cloud, binary = kind in (_STRUCTURED, _BATCHED), [name for name in headers if name.startswith("ce-")]
    detail = ""
    if kind not in _CONTENT_TYPES:
        detail = f"invalid Content-Type {kind!r:.80}: expected {' or '.join(_CONTENT_TYPES)}"
    elif binary and not is_cloud:
        expected = f"a CloudEvent as the body, with the Content-Type {_STRUCTURED}"
        detail = f"invalid header {binary[0]:.80}: expected {expected}"
    if detail:
        raise ProblemError(detail, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    return parse_events(body_text(request, max_bytes)), is_cloud


def envelope_problem(event: Event, names: AbstractSet[str]) -> str | None:
    """Refuse a CloudEvent that is not sent as one: defaults would stand for the attributes within its `data`."""
    if names >= _ENVELOPE and not {*event.fields, *(event._declared_attributes or ())} & {"specversion", "data"}:
        return "it is a CloudEvent: expected the Content-Type application/cloudevents+json"
    return None


@dataclass(frozen=True)
class EventCheck:
    """Checks that decide whether an event is taken: key and values, the schema, the declarations that count it."""

    event: Event
    schema: SchemaCheck | None = None
    admission: Plan | None = None
    clock: Callable[[], float] = time.time

    def texts(self, events: Sequence[object], bound: Mapping[str, str], *, is_cloud: bool = False) -> list[str]:
        """Return the events as JSON; raise a problem that names all that are refused, for all or none are taken."""
        if not events:
            raise ProblemError("the array contains no events")
        if len(events) > _MAX_EVENTS:
            raise ProblemError(f"{len(events)} events; limit: {_MAX_EVENTS}", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        texts, refused = list[str](), dict[int, ProblemError]()
        for index, values in enumerate(events):
            try:
                texts.append(self._checked(_values(values, self.event) if is_cloud else values, bound))
            except (ProblemError, InvalidArgumentError, MalformedImageError) as error:
                refused[index] = error if isinstance(error, ProblemError) else ProblemError(str(error))
        if not refused:
            return texts
        detail = f"{len(refused)} of {len(events)} events are refused; none was accepted"
        errors = [{"index": index, "detail": f"{problem!s:.{_MAX_REASON}}"} for index, problem in refused.items()]
        # 403 if any event is another's.
        raise ProblemError(detail, max(problem.status for problem in refused.values()), errors)

    def _checked(self, values: object, bound: Mapping[str, str]) -> str:
        """Return an event as JSON; refuse it by the cheapest check first."""
        require_own(values, bound)
        if not isinstance(values, Mapping):
            raise ProblemError("expected a JSON object")
        text = write_json(values)
        if len(text) > _MAX_MESSAGE_BYTES - 2:
            raise ProblemError(f"expected at most {_MAX_MESSAGE_BYTES} bytes of JSON")
        if problem := envelope_problem(self.event, values.keys()):
            raise ProblemError(problem)
        item = typed_item(self.event, values)
        if self.event.packed is not None:
            event_seconds(item[self.event.packed.time])
        # A schema sees the numbers that JSON Schema knows: 0.1 is its minimum of 0.1, and a multiple of 0.01.
        if self.schema is not None and (violation := self.schema(json.loads(text))) is not None:
            raise ProblemError(violation)
        if self.admission is not None and (reason := self.admission.refusal(item, self.clock())) is not None:
            raise ProblemError(reason)
        return text


def _values(envelope: object, event: Event) -> object:
    """Return the attributes in a CloudEvent's `data`, and its context attributes that the event names."""
    if not isinstance(envelope, Mapping):
        return envelope
    data, names = envelope.get("data", {}), {*event.fields, event.version, *(event._declared_attributes or ())}
    context = {name: value for name, value in envelope.items() if name != "data" and value is not None}
    named = {name: value for name, value in context.items() if name in names}
    canonical_values(_REQUIRED, typed_item(None, {name: context[name] for name in _REQUIRED if name in context}))
    if "data_base64" in context:
        raise InvalidArgumentError("data_base64", context["data_base64"], "none: 'data' is a JSON object")
    if not isinstance(data, Mapping):
        raise InvalidArgumentError("data", data, "a JSON object")
    for name in named.keys() & data.keys():
        if write_json(data[name]) != write_json(named[name]):
            allowed = f"the CloudEvent's own {named[name]!r:.80}, or none"
            raise InvalidArgumentError(f"data.{name}", data[name], allowed)
    return {**data, **named}


def queue_messages(texts: Iterable[str]) -> list[str]:
    """Pack events as JSON, none longer than a message, into JSON arrays; the order stays."""
    messages, length = [list[str]()], 1
    for text in texts:
        if length + len(text) >= _MAX_MESSAGE_BYTES:
            messages.append([])
            length = 1
        messages[-1].append(text)
        length += len(text) + 1  # JSON is ASCII here.
    return [f"[{','.join(packed)}]" for packed in messages]
