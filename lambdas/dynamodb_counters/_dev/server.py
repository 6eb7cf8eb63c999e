"""The emulator's process: ministack behind a door, with what it lacks of AWS; run as a file, without this package.

PartiQL's inserts reach the stream, tables have ARNs, and a batch of a stream comes again if its function asks for it.
Ministack answers everybody who reaches its port, and lets any page read the answer: a page in a browser of this machine
could create a function and run it.
"""

from __future__ import annotations

import hmac
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qsl

App = Callable[[Any, Any, Any], Awaitable[None]]

# By name: a page of another one may have pointed that name at this machine. Ports do not matter, since whatever else
# listens on this machine could connect without a browser.
_HERE: Final = re.compile(r"(127\.0\.0\.1|localhost)(:\d+)?")
_ORIGIN_HERE: Final = re.compile(rf"https?://{_HERE.pattern}")
_PUBLIC: Final = re.compile(r"/_aws/execute-api/[^/]+/.*|/_ministack/(ready|cfn-response/.+)", re.DOTALL)
"""The app's own HTTP APIs, which say themselves who may call them; and answers to one question."""

_CREDENTIAL: Final = re.compile(r"Credential=([^/,]*)/")


def refusal(scope: Mapping[str, Any], key: str) -> str:
    """Why a request is refused; "" if it is not."""
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
    hosts = [value for name, value in headers if name == "host"]
    if len(hosts) != 1 or not _HERE.fullmatch(hosts[0]):
        return "invalid Host: expected 127.0.0.1 or localhost"
    if not all(_ORIGIN_HERE.fullmatch(value) for name, value in headers if name == "origin"):
        return "invalid Origin: expected a page of this machine"
    if _PUBLIC.fullmatch(scope["path"]):
        return ""
    query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
    # Functions sign with their account's id, roles with a key of their own: the session token of both is the key.
    given = [value for name, value in headers if name == "x-amz-security-token"]
    given += [found for name, value in headers if name == "authorization" for found in _CREDENTIAL.findall(value)]
    given += [query.get("X-Amz-Security-Token", ""), query.get("X-Amz-Credential", "").partition("/")[0]]
    known = any(hmac.compare_digest(one.encode(), key.encode()) for one in given)
    return "" if known else "invalid access key: expected the one of this run, as `counters dev` exports it"


def guarded(app: App, key: str, *, is_alone: bool = False) -> App:
    """Let in who may ask; answers of an emulator that runs all that counts its tables say so."""
    told = [(b"x-counters-dev", b"alone")] if is_alone else []

    async def door(scope: Any, receive: Any, send: Any) -> None:
        async def telling(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *told]}
            await send(message)

        reason = refusal(scope, key) if scope["type"] in ("http", "websocket") else ""
        if not reason:
            await app(scope, receive, telling)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            kind = (b"content-type", b"text/plain; charset=utf-8")
            await send({"type": "http.response.start", "status": 403, "headers": [kind]})
            await send({"type": "http.response.body", "body": reason.encode()})

    return door


def _insert_into_the_stream() -> None:
    from ministack.services import dynamodb  # type: ignore[import-untyped]  # noqa: PLC0415 - when it is run

    insert = dynamodb._partiql_insert  # noqa: SLF001 - there is no other way in

    def streamed(table: dict[str, Any], parsed: dict[str, Any]) -> Any:
        answer = insert(table, parsed)
        if answer[0] == 200:  # noqa: PLR2004 - HTTP's OK
            dynamodb._emit_stream_event(table["TableName"], "INSERT", None, parsed["item"])  # noqa: SLF001
        return answer

    dynamodb._partiql_insert = streamed  # noqa: SLF001


def _find_by_arn() -> None:
    from ministack.services import dynamodb  # noqa: PLC0415 - when it is run

    handle = dynamodb.handle_request

    async def named(method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]) -> Any:
        """Answer what asks a table of this account and region by its ARN; ministack knows names only."""
        if b":table/" in body:
            with suppress(ValueError, TypeError, AttributeError):  # ministack refuses it, too.
                asked = json.loads(body)
                tables = {table["TableArn"]: name for name, table in dynamodb._tables.items()}  # noqa: SLF001
                if (arn := asked.get("TableName")) in tables:
                    body = json.dumps({**asked, "TableName": tables[arn]}).encode()
        return await handle(method, path, headers, body, query)

    dynamodb.handle_request = named


def unfinished(event: Any, answer: Any) -> bool:
    """Whether a function that reads a stream has said that it is not done with a batch."""
    with suppress(ValueError, TypeError, AttributeError, LookupError):  # Events and answers of all kinds of functions.
        said = answer["body"]
        said = json.loads(said) if isinstance(said, str) else said
        return event["Records"][0]["eventSource"] == "aws:dynamodb" and bool(said.get("batchItemFailures"))
    return False


def _deliver_unfinished_batches_again() -> None:
    """Ministack heeds what a function reports of a queue only; here, the whole batch comes again after a pause."""
    from ministack.services import lambda_svc  # noqa: PLC0415 - when it is run

    execute = lambda_svc._execute_function  # noqa: SLF001 - there is no other way in

    def executed(function: dict[str, Any], event: Any) -> Any:
        answer = execute(function, event)
        return {**answer, "error": True} if unfinished(event, answer) else answer

    lambda_svc._execute_function = executed  # noqa: SLF001


if __name__ == "__main__":
    from ministack import app as emulator  # type: ignore[import-untyped]
    from ministack.services import sts

    key = os.environ["AWS_ACCESS_KEY_ID"]
    _insert_into_the_stream()
    _find_by_arn()
    _deliver_unfinished_batches_again()
    # Who assumes a role had the key, and goes on with it: the CDK CLI does.
    sts._gen_session_token = lambda: key  # noqa: SLF001 - there is no other way in
    emulator.app = guarded(emulator.app, key, is_alone="COUNTERS_DEV" in os.environ)
    emulator.main()
