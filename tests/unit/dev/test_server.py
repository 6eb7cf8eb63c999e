"""The emulator's door: who may ask it for what, as far as a request's head shows."""

from __future__ import annotations

import pytest

from dynamodb_counters._dev.server import refusal

KEY = "LOCAL0123456789"
HOST = ("Host", "127.0.0.1:4566")
SCOPE = f"AWS4-HMAC-SHA256 Credential={KEY}/20261120/us-east-1/lambda/aws4_request"
SIGNED = ("Authorization", f"{SCOPE}, SignedHeaders=host")
API = "/_aws/execute-api/abc/$default/v1"
INVOKE = "/2015-03-31/functions/f/invocations"


def refused(path: str, *headers: tuple[str, str], query: str = "") -> str:
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers]
    return refusal({"path": path, "query_string": query.encode(), "headers": pairs}, KEY)


@pytest.mark.parametrize(
    ("path", "headers", "query"),
    [
        (INVOKE, (HOST, SIGNED), ""),
        (INVOKE, (("Host", "localhost"), SIGNED), ""),
        (INVOKE, (HOST, ("X-Amz-Security-Token", KEY)), ""),
        ("/bucket/key", (HOST,), f"X-Amz-Credential={KEY}%2F20261120%2Fus-east-1%2Fs3%2Faws4_request"),
        ("/bucket/key", (HOST,), f"X-Amz-Credential=000000000000%2F20261120&X-Amz-Security-Token={KEY}"),
        (API, (HOST,), ""),
        (API, (HOST, ("Origin", "http://127.0.0.1:4566")), ""),
        (API, (HOST, ("Origin", "http://localhost:3000")), ""),
        ("/_ministack/ready", (HOST,), ""),
        ("/_ministack/cfn-response/5f0c", (HOST,), ""),
    ],
)
def test_who_has_the_key_and_who_calls_an_api_of_the_app_gets_in(
    path: str, headers: tuple[tuple[str, str], ...], query: str
) -> None:
    assert refused(path, *headers, query=query) == ""


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ((), "Host"),
        ((("Host", "rebound.example:4566"),), "Host"),
        ((("Host", "127.0.0.1.example:4566"),), "Host"),
        ((("Host", "example@127.0.0.1:4566"),), "Host"),
        ((HOST, ("Host", "rebound.example")), "Host"),
        ((HOST, ("Origin", "https://example.com")), "Origin"),
        ((HOST, ("Origin", "http://localhost.example.com")), "Origin"),
        ((HOST, ("Origin", "null")), "Origin"),
        ((HOST, ("Origin", "http://127.0.0.1:4566"), ("Origin", "https://example.com")), "Origin"),
    ],
)
def test_a_foreign_host_or_origin_is_refused_everywhere_and_with_the_key(
    headers: tuple[tuple[str, str], ...], said: str
) -> None:
    for path in (INVOKE, API, "/_ministack/ready"):
        assert said in refused(path, *headers, SIGNED)


@pytest.mark.parametrize(
    "path",
    [
        INVOKE,
        "/",
        "/bucket/key",
        "/_aws/execute-api",
        "/_aws/execute-api/abc",
        "/_aws/execute-api//abc/x",
        "/_ministack/reset",
        "/_ministack/health",
        "/x/_aws/execute-api/abc/$default/",
        "/restapis/abc/s/_user_request_/",
    ],
)
@pytest.mark.parametrize("key", ["test", "000000000000", "", KEY[:-1], f"{KEY}x"])
def test_all_else_takes_the_key(path: str, key: str) -> None:
    other = ("Authorization", SIGNED[1].replace(KEY, key))
    assert "access key" in refused(path, HOST)
    assert "access key" in refused(path, HOST, other, ("X-Amz-Security-Token", key))
    assert "access key" in refused(path, HOST, query=f"X-Amz-Credential={key}%2F2026&X-Amz-Security-Token={key}")
