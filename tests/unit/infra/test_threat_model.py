"""The threat model's way to bound each client: the stack of docs/threat-model.md, and the authorizer in it."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.unit.infra.support import PROJECT, each, new_stack, properties, synthesized

_PAGE = (PROJECT / "docs" / "threat-model.md").read_text()
_ORIGIN, _SIGNING_KEY = "from-cloudfront", "signs-tokens"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    """The names of the page's last example, and its template."""
    *_, code = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)
    names: dict[str, Any] = {"self": new_stack(region="us-east-1")}
    exec(code, names)
    return {**names, "template": synthesized(names["self"])}


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


def test_every_route_asks_the_authorizer_which_asks_for_both_headers(example: dict[str, Any]) -> None:
    template: Template = example["template"]
    authorizer = properties(template, "AWS::ApiGatewayV2::Authorizer")
    assert authorizer["IdentitySource"] == ["$request.header.x-origin-verify", "$request.header.authorization"]
    routes = each(template, "AWS::ApiGatewayV2::Route")
    assert {route["AuthorizationType"] for route in routes} == {"CUSTOM"}
    assert len(routes) == 4


def test_readers_and_writers_are_bound_to_the_customer(example: dict[str, Any]) -> None:
    functions = each(example["template"], "AWS::Lambda::Function")
    bound = [function["Environment"]["Variables"].get("TENANT") for function in functions]
    assert [json.loads(text) for text in bound if text] == [{"customer": "lambda.customer"}] * 2


def test_cloudfront_carries_the_secret_and_forwards_the_token(example: dict[str, Any]) -> None:
    template: Template = example["template"]
    distribution = properties(template, "AWS::CloudFront::Distribution")["DistributionConfig"]
    [origin] = distribution["Origins"]
    [header] = origin["OriginCustomHeaders"]
    assert header["HeaderName"] == "x-origin-verify"
    assert "{{resolve:secretsmanager:" in json.dumps(header["HeaderValue"])
    behavior = distribution["DefaultCacheBehavior"]
    # AWS's policies "caching disabled" and "all viewer headers except Host".
    assert behavior["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
    assert behavior["OriginRequestPolicyId"] == "b689b0a8-53d0-40ab-baf2-68738e2966ac"
    assert behavior["ViewerProtocolPolicy"] == "https-only"
    [firewall] = template.find_resources("AWS::WAFv2::WebACL")
    assert distribution["WebACLId"] == {"Fn::GetAtt": [firewall, "Arn"]}
