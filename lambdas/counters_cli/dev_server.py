"""The emulator's process: ministack behind a door, with what it lacks of AWS; run as a file, without this package.

Ministack answers everybody who reaches its port, and lets any page read the answer: a page in a browser of this machine
could create a function and run it.
"""

from __future__ import annotations

import hmac
import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

App = Callable[[Any, Any, Any], Awaitable[None]]

# By name: a page of another one may have pointed that name at this machine. Ports do not matter, since whatever else
# listens on this machine could connect without a browser.
_HERE: Final = re.compile(r"(127\.0\.0\.1|localhost)(:\d+)?")
_ORIGIN_HERE: Final = re.compile(rf"https?://{_HERE.pattern}")
_PUBLIC: Final = re.compile(r"/_aws/execute-api/[^/]+/.*|/_ministack/(ready|cfn-response/.+)", re.DOTALL)
"""The app's own HTTP APIs, which say themselves who may call them; and answers to one question."""

_OWN_ARN: Final = re.compile(rb'("TableName": ?)"arn:aws:dynamodb:us-east-1:0{12}:table/')
_CREDENTIAL: Final = re.compile(r"Credential=([^/,]*)/")


def refusal(scope: Mapping[str, Any], key: str) -> str:
    """Return why a request is refused; "" if it is not."""
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
    keys = [value for name, value in headers if name == "x-amz-security-token"]
    keys += [match for name, value in headers if name == "authorization" for match in _CREDENTIAL.findall(value)]
    keys += [query.get("X-Amz-Security-Token", ""), query.get("X-Amz-Credential", "").partition("/")[0]]
    if any(hmac.compare_digest(text.encode(), key.encode()) for text in keys):
        return ""
    return "invalid access key: expected the one of this run, as `counters dev` exports it"


def guarded(app: App, key: str, *, is_alone: bool = False) -> App:
    """Let in who may ask; answers of an emulator that runs all that counts its tables say so."""
    extra = [(b"x-counters-dev", b"alone")] if is_alone else []

    async def door(scope: Any, receive: Any, send: Any) -> None:
        async def send_marked(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *extra]}
            await send(message)

        if scope["type"] == "lifespan" or not (reason := refusal(scope, key)):
            await app(scope, receive, send_marked)
        elif scope["type"] == "http":
            kind = (b"content-type", b"text/plain; charset=utf-8")
            await send({"type": "http.response.start", "status": 403, "headers": [kind]})
            await send({"type": "http.response.body", "body": reason.encode()})

        # A WebSocket that is not accepted is refused.

    return door


def end_with_the_caller(max_seconds: float, directory: str) -> None:
    """Wait until the process that holds this one's input ends, or the time is up; then leave nothing."""
    select.select([sys.stdin], [], [], max_seconds)
    # In a session of its own, and once nobody writes there any more.
    subprocess.Popen(["sh", "-c", 'sleep 1; rm -rf "$0"', directory], start_new_session=True)
    os.killpg(0, signal.SIGKILL)


def _find_by_arn() -> None:
    """Let tables be named by their ARN; ministack knows names only."""
    from ministack.services import dynamodb  # type: ignore[import-untyped]  # noqa: PLC0415 - when it is run

    handle = dynamodb.handle_request

    async def named(method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]) -> Any:
        return await handle(method, path, headers, _OWN_ARN.sub(rb'\1"', body), query)

    dynamodb.handle_request = named


if __name__ == "__main__":
    from ministack import app as emulator  # type: ignore[import-untyped]
    from ministack.services import sts

    key = os.environ["AWS_ACCESS_KEY_ID"]
    limits = float(os.environ.pop("COUNTERS_MAX_SECONDS")), os.environ["HOME"]
    threading.Thread(target=end_with_the_caller, args=limits, daemon=True).start()
    _find_by_arn()
    # Who assumes a role had the key, and goes on with it: the CDK CLI does.
    sts._gen_session_token = lambda: key  # noqa: SLF001 - there is no other way in
    emulator.app = guarded(emulator.app, key, is_alone="COUNTERS_DEV" in os.environ)
    emulator.main()
