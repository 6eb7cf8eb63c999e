"""DynamoDB's side of HTTPS: a process on this machine that answers each operation as DynamoDB does, always alike."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final
from unittest.mock import patch
from zlib import crc32

from dynamodb_counters._table import make_client

_LONGEST: Final = 3600  # Seconds until the process ends by itself.
_CERTIFICATE: Final = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"),
    *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "server.pem"),
)
_HEADERS: Final = (
    "HTTP/1.1 200 OK\r\nServer: Server\r\nDate: Fri, 20 Nov 2026 10:00:00 GMT\r\n"
    "Content-Type: application/x-amz-json-1.0\r\nContent-Length: {}\r\nConnection: keep-alive\r\n"
    "x-amzn-RequestId: 3T6C6C8EN5P6BPRQ0F8O0P2L7BVV4KQNSO5AEMVJF66Q9ASUAAJG\r\nx-amz-crc32: {}\r\n\r\n"
)
_UNITS: Final = {"TableName": "counters", "CapacityUnits": 1.0}


@contextmanager
def https_client(item: Mapping[str, Any]) -> Iterator[Any]:
    """Return the runtime's client, and a server whose table has this item only."""
    with TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        subprocess.run(_CERTIFICATE, check=True, capture_output=True, cwd=folder)
        server = get_context("spawn").Process(target=_serve, args=(Path(folder), item, listener), daemon=True)
        server.start()
        environment = {
            **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "testing"),
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_DYNAMODB": f"https://localhost:{listener.getsockname()[1]}",
            "AWS_CA_BUNDLE": str(Path(folder) / "server.pem"),
        }
        try:
            with patch.dict(os.environ, environment):
                yield make_client()
        finally:
            server.kill()
            server.join()


class _Connection(StreamRequestHandler):
    item: ClassVar[Mapping[str, Any]]

    def handle(self) -> None:
        """Answer until the client closes it."""
        while self.rfile.readline():
            headers = {}
            while line := self.rfile.readline().strip().decode():
                name, _, value = line.partition(": ")
                headers[name.lower()] = value
            request = json.loads(self.rfile.read(int(headers["content-length"])))
            answer = json.dumps(self._answer(headers["x-amz-target"].partition(".")[2], request)).encode()
            self.wfile.write(_HEADERS.format(len(answer), crc32(answer)).encode() + answer)

    def _answer(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        match operation:
            case "GetItem" if request["Key"].items() <= self.item.items():
                answer = {"Item": self.item}
            case "BatchGetItem":
                answer = {"Responses": {name: [] for name in request["RequestItems"]}, "UnprocessedKeys": {}}
            case "Query":
                answer = {"Items": [], "Count": 0, "ScannedCount": 0}
            case "BatchExecuteStatement":
                answer = {"Responses": [{"TableName": "counters"} for _ in request["Statements"]]}
        if "ReturnConsumedCapacity" in request:
            answer["ConsumedCapacity"] = [_UNITS] if operation[:5] in ("Batch", "Trans") else _UNITS
        return answer


def _serve(folder: Path, item: Mapping[str, Any], listener: socket.socket) -> None:
    signal.alarm(_LONGEST)
    _Connection.item = item
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "key.pem")
    with ThreadingTCPServer(("127.0.0.1", 0), _Connection, bind_and_activate=False) as server:
        server.daemon_threads = True
        server.socket = context.wrap_socket(listener, server_side=True)
        server.serve_forever()
