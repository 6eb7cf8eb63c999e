"""The client for browsers in a real one: batches, a retry, and what a page that is left sends by a beacon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import eventually
from tests.e2e.demonstration import PROJECT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.e2e
_SCRIPT = PROJECT / "infra" / "cdk_dynamodb_counters" / "browser" / "events.js"
_START = "async () => { window.post = (await import('/events.js')).batching('/events', { wait: 200 }); }"
_POST = "urls => urls.forEach(url => post({ url }))"


class Door(ThreadingHTTPServer):
    """Serves the client, and takes what it posts, but for the first request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[list[dict[str, Any]]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    server: Door

    def do_GET(self) -> None:
        self._answer(200, _SCRIPT.read_bytes() if self.path == "/events.js" else b"<title>A page</title>")

    def do_POST(self) -> None:
        assert self.headers["Content-Type"].startswith("text/plain")
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer(202 if len(self.server.bodies) > 1 else 503, b"{}")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/javascript" if self.path == "/events.js" else "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def door() -> Iterator[Door]:
    with Door() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_events_go_in_batches_and_again_and_by_a_beacon(browser: Browser, door: Door) -> None:
    page = browser.new_page()
    page.goto(door.url)
    page.evaluate(_START)
    page.evaluate(_POST, ["/a", "/b"])
    assert eventually(lambda: len(door.bodies) == 2)
    assert door.bodies[0] == door.bodies[1]
    assert [event["url"] for event in door.bodies[0]] == ["/a", "/b"]
    page.evaluate(_POST, ["/c"])
    page.goto("about:blank")
    # Another one repeats what was not answered yet.
    assert eventually(lambda: ["/c"] in [[event["url"] for event in body] for body in door.bodies[2:]])
    page.close()
