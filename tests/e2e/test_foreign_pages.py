"""No page of the Web that a developer visits reaches the emulator on the developer's machine, in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from dynamodb_counters._dev.emulator import Emulator

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.e2e

# Headers as an SDK would send them; what they name is enough for the emulator to create something.
_ATTACK = """
async ([url, key]) => {
    const scope = `AWS4-HMAC-SHA256 Credential=${key}/20261120/us-east-1/sqs/aws4_request`;
    const target = "AmazonSQS.CreateQueue";
    const body = JSON.stringify({QueueName: "owned"});
    const headers = {"Content-Type": "application/x-amz-json-1.0", "Authorization": scope, "X-Amz-Target": target};
    const tries = [
        fetch(url, {method: "POST", headers, body}),
        fetch(url, {method: "POST", mode: "no-cors", body: "Action=CreateQueue&QueueName=owned"}),
        fetch(`${url}?Action=CreateQueue&QueueName=owned`, {mode: "no-cors"}),
    ];
    const answers = await Promise.allSettled(tries);
    return answers.map((one) => one.status === "rejected" ? "refused" : String(one.value.status));
}
"""


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>Harmless</title>")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def _website() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("key", ["test", pytest.param("000000000000", marks=pytest.mark.night), "the one of this run"])
def test_a_page_from_elsewhere_and_one_whose_name_was_rebound_create_nothing(browser: Browser, key: str) -> None:
    with Emulator.start() as emulator, _website() as port:
        used = emulator.key if key.startswith("the") else key
        page = browser.new_page()
        page.goto(f"http://shop.example:{port}/")
        elsewhere = page.evaluate(_ATTACK, [f"{emulator.endpoint_url}/", used])
        page.goto(f"http://rebound.example:{emulator.port}/_ministack/ready")
        rebound = page.evaluate(_ATTACK, [f"http://rebound.example:{emulator.port}/", used])
        page.close()

        # An answer to a request without CORS cannot be read: its status is 0.
        assert elsewhere[0] == "refused"
        assert set(rebound) == {"403"}
        assert emulator.client("sqs").list_queues().get("QueueUrls", []) == []
