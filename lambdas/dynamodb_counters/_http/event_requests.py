"""Events as clients send them: one object, or an array of up to 500; checked, and packed into queue messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from dynamodb_counters._declarations import Event
from dynamodb_counters._http.documents import read_json, write_json
from dynamodb_counters._http.problems import ProblemError, refused
from dynamodb_counters._writes.event_items import typed_item
from dynamodb_counters.errors import InvalidArgumentError

MAX_EVENTS: Final = 500
"""Most events of one request."""

MAX_MESSAGE_BYTES: Final = 200_000
"""Longest message: below the 262,144 bytes that every SQS queue takes."""

_MAX_ERRORS: Final = 20

Check = Callable[[Mapping[str, Any]], str | None]
"""Gives what is wrong with the attributes of an event, or None."""


def events_of(text: str) -> list[Any]:
    """Read the events of a request or message.

    Parameters
    ----------
    text : str
        JSON: an event, or an array of events.

    Returns
    -------
    list
        Whatever stands there, unchecked.

    Raises
    ------
    ProblemError
        It is no JSON.
    """
    try:
        document = read_json(text)
    except ValueError as error:
        raise refused(f"the body is no JSON: {error}") from None
    return document if isinstance(document, list) else [document]


def require_events(event: Event, text: str, schema: Check, *, most: int = MAX_EVENTS) -> list[Mapping[str, Any]]:
    """Read and check the events of a request.

    Parameters
    ----------
    event : Event
        What kind of events.
    text : str
        The request's body.
    schema : callable
        Checks the attributes of one event.
    most : int, optional
        How many there may be. Default 500.

    Returns
    -------
    list of mapping
        All of them can be accepted.

    Raises
    ------
    ProblemError
        One of them cannot, or there are none or too many; the errors name the first twenty by index.
    """
    events = events_of(text)
    if not events:
        raise refused("the array holds no event")
    if len(events) > most:
        raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{len(events)} events; {most} are allowed")
    errors = [
        {"index": index, "detail": reason}
        for index, values in enumerate(events)
        if (reason := reason_against(event, values, schema)) is not None
    ]
    if errors:
        detail = f"{len(errors)} of {len(events)} events cannot be accepted; none was"
        raise ProblemError(HTTPStatus.BAD_REQUEST, detail, errors[:_MAX_ERRORS])
    return events


def reason_against(event: Event, values: object, schema: Check) -> str | None:
    """Tell why something cannot be accepted as an event.

    Parameters
    ----------
    event : Event
        What kind of event.
    values : object
        What was sent.
    schema : callable
        Checks the attributes.

    Returns
    -------
    str or None
        None if it can be.
    """
    if not isinstance(values, Mapping):
        return "an event is a JSON object"
    try:
        typed_item(event, values)
    except InvalidArgumentError as error:
        return str(error)
    if len(write_json(values).encode()) > MAX_MESSAGE_BYTES - 2:
        return f"an event has at most {MAX_MESSAGE_BYTES} bytes"
    return schema(values)


def messages_of(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Pack events into queue messages.

    Parameters
    ----------
    events : sequence of mapping
        None longer than a message.

    Returns
    -------
    list of str
        JSON arrays, in the order of the events.

    Examples
    --------
    >>> messages_of([{"url": "/a"}, {"url": "/b"}])
    ['[{"url":"/a"},{"url":"/b"}]']
    """
    packed: list[list[str]] = []
    length = MAX_MESSAGE_BYTES
    for values in events:
        text = write_json(values)
        size = len(text.encode()) + 1
        if length + size > MAX_MESSAGE_BYTES:
            packed.append([])
            length = 1
        packed[-1].append(text)
        length += size
    return [f"[{','.join(texts)}]" for texts in packed]
