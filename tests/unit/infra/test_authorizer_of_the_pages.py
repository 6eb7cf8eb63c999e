"""The authorizer that docs/threat-model.md offers lets nobody in without a token."""

from __future__ import annotations

import hashlib
import hmac
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.infra.support import PROJECT, new_stack

_PAGE = (PROJECT / "docs" / "threat-model.md").read_text()
_ORIGIN, _SIGNING_KEY = "from-cloudfront", "signs-tokens"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    """The names of the page's last example."""
    *_, code = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)
    names: dict[str, Any] = {"self": new_stack(region="us-east-1")}
    exec(code, names)
    return names


@pytest.fixture
def authorize(example: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The authorizer's handler, with its secrets."""

    def get_secret_value(SecretId: str) -> dict[str, str]:  # noqa: N803 - as the SDK calls it
        return {"SecretString": SecretId}

    client = SimpleNamespace(get_secret_value=get_secret_value)
    monkeypatch.setitem(sys.modules, "boto3", SimpleNamespace(client=lambda _: client))
    monkeypatch.setenv("ORIGIN", _ORIGIN)
    monkeypatch.setenv("SIGNING_KEY", _SIGNING_KEY)
    function: dict[str, Any] = {}
    exec(example["AUTHORIZER"], function)
    return lambda token, origin: function["handler"](
        {"headers": {"authorization": token, "x-origin-verify": origin}}, None
    )


def token(customer: str, key: str = _SIGNING_KEY) -> str:
    return f"{customer}.{hmac.new(key.encode(), customer.encode(), hashlib.sha256).hexdigest()}"


@pytest.mark.parametrize("customer", ["c1", "with.dots.", "ümlaut", "a#b"])
def test_a_customer_is_known_by_a_token(authorize: Any, customer: str) -> None:
    assert authorize(token(customer), _ORIGIN) == {"isAuthorized": True, "context": {"customer": customer}}


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        (token("c1"), "guessed"),
        (token("c1"), ""),
        (token("c1", "guessed"), _ORIGIN),
        (token("c1").replace("c1", "c2"), _ORIGIN),
        ("c1", _ORIGIN),
        ("c1.", _ORIGIN),
        ("", _ORIGIN),
        (".", _ORIGIN),
        ("c1.ü", _ORIGIN),
        (token("c1"), "ü"),
    ],
)
def test_other_requests_are_not_authorized(authorize: Any, given: str, origin: str) -> None:
    assert authorize(given, origin)["isAuthorized"] is False
