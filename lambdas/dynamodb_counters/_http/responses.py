"""Answers of the handlers, as Powertools sends them."""

from __future__ import annotations

import hashlib
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import Response

from dynamodb_counters._http.documents import write_json
from dynamodb_counters._http.problems import PROBLEM_JSON, ProblemError, refused

JSON: Final = "application/json"
NOT_CACHED: Final = "no-store"
# A beacon, and a form without a type, send plain text; anything else is not meant as JSON.
_TEXTS: Final = (JSON, "text/plain")


def answer(
    body: Mapping[str, Any], *, status: HTTPStatus = HTTPStatus.OK, cache: str = NOT_CACHED, known: str | None = None
) -> Response[str]:
    """Make an answer.

    Parameters
    ----------
    body : mapping
        The document.
    status : HTTPStatus, optional
        Default: 200.
    cache : str, optional
        For ``Cache-Control``. Default: it is not cached.
    known : str, optional
        The request's ``If-None-Match``: an answer that the client has already is not sent again.

    Returns
    -------
    Response
        With an ``ETag`` where it may be cached.
    """
    text = write_json(body)
    if cache == NOT_CACHED:
        return Response(status, JSON, text, {"Cache-Control": cache})
    return tagged(text, JSON, {"Cache-Control": cache}, known, status=status)


def tagged(
    text: str, kind: str, headers: Mapping[str, str], known: str | None, *, status: HTTPStatus = HTTPStatus.OK
) -> Response[str]:
    """Make an answer that is not sent again to a client that has it.

    Parameters
    ----------
    text : str
        The body.
    kind : str
        Its content type.
    headers : mapping
        Others beside the ``ETag``.
    known : str or None
        The request's ``If-None-Match``.
    status : HTTPStatus, optional
        Default: 200.

    Returns
    -------
    Response
        With an ``ETag``; 304 without a body where the client has it.
    """
    tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    told = {**headers, "ETag": tag}
    if known is not None and tag in (each.strip() for each in known.split(",")):
        return Response(HTTPStatus.NOT_MODIFIED, kind, "", told)
    return Response(status, kind, text, told)


def problem(error: ProblemError) -> Response[str]:
    """Make the answer that tells a problem.

    Parameters
    ----------
    error : ProblemError
        What is wrong.

    Returns
    -------
    Response
        ``application/problem+json``, never cached.
    """
    headers = {"Cache-Control": NOT_CACHED}
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    return Response(error.status, PROBLEM_JSON, write_json(error.body), headers)


def body_text(event: Mapping[str, Any], most_bytes: int) -> str:
    """Give the body of a request as text.

    Parameters
    ----------
    event : mapping
        From an HTTP API, payload format 2.0.
    most_bytes : int
        How long it may be.

    Returns
    -------
    str
        Decoded.

    Raises
    ------
    ProblemError
        There is none, it is too long, not meant as JSON or not UTF-8.
    """
    kind = _content_type(event)
    if kind not in _TEXTS:
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Type {kind or 'is missing'}: send {JSON} (or text/plain)"
        )
    body = event.get("body") or ""
    try:
        data = b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
        text = data.decode()
    except (Base64Error, UnicodeError):
        raise refused("the body is not UTF-8") from None
    if len(data) > most_bytes:
        raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{len(data)} bytes; {most_bytes} are allowed")
    return text


def _content_type(event: Mapping[str, Any]) -> str:
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    return str(headers.get("content-type", "")).partition(";")[0].strip().lower()
