"""The client that is made without what other services need sends what botocore's own would, and is made for less."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.httpsession import URLLib3Session
from botocore.loaders import JSONFileLoader, Loader
from botocore.session import get_session

from dynamodb_counters import _lean_client
from dynamodb_counters._table import make_client, make_service_client

_MESSAGES: Final[Any] = [{"Id": "1", "MessageBody": "m"}]
_CALLS: Final[dict[str, Callable[[Any], object]]] = {
    "dynamodb": lambda client: client.update_item(TableName="t", Key={"pk": {"S": "a"}}),
    "sqs": lambda client: client.send_message_batch(QueueUrl="https://sqs.test/q", Entries=_MESSAGES),
}
_VARYING: Final = re.compile(r"Signature=\w+|\d{8}T\d{6}Z|/\d{8}/|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LOADER: Final = Loader()
_PARTITIONS: Final = _LOADER.load_data("partitions")["partitions"]
_REGIONS: Final = [
    *(region for partition in _PARTITIONS for region in partition["regions"] if not region.endswith("-global")),
    "eu-new-9",
    "fips-us-east-1",
]


def _request(service: str, client: Any) -> tuple[Any, ...]:
    requests = list[AWSPreparedRequest]()

    def send(request: AWSPreparedRequest, **_: Any) -> Any:
        requests.append(request)
        return SimpleNamespace(status_code=200, headers={}, content=b"{}", raw=None, text="{}")

    client.meta.events.register("before-send", send)
    _CALLS[service](client)
    [request] = requests
    items: Any = request.headers.items()
    texts = {name: value.decode() if isinstance(value, bytes) else str(value) for name, value in items}
    return request.method, request.url, request.body, {name: _VARYING.sub("", text) for name, text in texts.items()}


@pytest.mark.parametrize("setting", ["", "AWS_USE_FIPS_ENDPOINT=true", "AWS_ENDPOINT_URL=http://a.test:1"])
@pytest.mark.parametrize("service", _lean_client.SERVICES)
def test_it_sends_what_botocore_s_own_sends(monkeypatch: pytest.MonkeyPatch, service: Any, setting: str) -> None:
    trace = ("AWS_SESSION_TOKEN=token", "AWS_LAMBDA_FUNCTION_NAME=f", "_X_AMZN_TRACE_ID=trace")
    for variable in (*trace, *filter(None, [setting])):
        monkeypatch.setenv(*variable.split("="))
    for region in _REGIONS[:: 7 if setting else 1]:
        monkeypatch.setenv("AWS_DEFAULT_REGION", region)
        lean, session = make_service_client(service), get_session()
        session.register_component("data_loader", _LOADER)
        own: Any = session.create_client(service, config=Config(retries=lean.meta.config.retries))
        assert _request(service, lean) == _request(service, own), region
        for name in ("endpoint_url", "partition", "region_name"):
            assert getattr(lean.meta, name) == getattr(own.meta, name), (region, name)


_ASSUMED: Final = """<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>ASSUMED</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken>
<Expiration>2999-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>"""


@pytest.mark.parametrize("key", [None, ""])
@pytest.mark.parametrize("service", _lean_client.SERVICES)
def test_credentials_may_come_from_another_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, service: str, key: str | None
) -> None:
    """As in a container of EKS; a key that is empty is none."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name) if key is None else monkeypatch.setenv(name, key)
    (tmp_path / "token").write_text("token")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/writer")
    requests = list[AWSPreparedRequest]()

    def send(_: URLLib3Session, request: AWSPreparedRequest) -> AWSResponse:
        requests.append(request)
        body = _ASSUMED if "sts" in request.url else "{}"
        raw: Any = SimpleNamespace(stream=lambda: [body.encode()])
        return AWSResponse(request.url, 200, HTTPHeaders(), raw)

    monkeypatch.setattr(URLLib3Session, "send", send)
    _CALLS[service](make_service_client(service))
    assert [".sts." in f".{request.url.split('/')[2]}" for request in requests] == [True, False]
    assert "Credential=ASSUMED/" in str(requests[1].headers["Authorization"])


def test_it_reads_no_other_service(monkeypatch: pytest.MonkeyPatch) -> None:
    paths, load = list[str](), JSONFileLoader.load_file

    def load_file(loader: JSONFileLoader, path: str) -> Any:
        paths.append(path)
        return load(loader, path)

    monkeypatch.setattr(JSONFileLoader, "load_file", load_file)
    monkeypatch.setattr(Loader, "list_available_services", lambda *_: pytest.fail("looks at all services"))
    make_client()
    files = {path.split("/data/")[1] for path in paths if "/botocore/data/" in path}
    assert not {path for path in files if not path.startswith("dynamodb/")} - {
        "partitions",
        "sdk-default-configuration",
    }
    assert any("service-2" in path for path in files)


@pytest.mark.parametrize("part", ["_Loader", "EnvProvider", "BUILTIN_HANDLERS"])
def test_without_a_part_of_botocore_its_own_session_makes_the_client(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, part: str
) -> None:
    monkeypatch.delattr(_lean_client, part)
    with caplog.at_level("INFO", "dynamodb_counters._table"):
        client = make_client()
    assert f"botocore's own session makes the client: NameError(\"name '{part}'" in caplog.text
    assert client.meta.service_model.service_name == "dynamodb"


_PHASES: Final = (
    *("provide-client-params", "before-parameter-build", "before-endpoint-resolution", "before-call"),
    *("request-created", "choose-signer", "before-sign", "before-send", "response-received", "before-parse"),
    *("needs-retry", "after-call", "after-call-error", "getattr", "creating-client-class"),
)


@pytest.mark.parametrize("service", _lean_client.SERVICES)
def test_the_same_handlers_are_called(service: Any) -> None:
    lean, session = make_service_client(service), get_session()
    session.register_component("data_loader", _LOADER)
    own: Any = session.create_client(service, config=Config(retries=lean.meta.config.retries))
    for phase in _PHASES:
        for operation in own.meta.service_model.operation_names:
            called, expected = (_handlers(client, f"{phase}.{service}.{operation}") for client in (lean, own))
            assert called == expected, (phase, operation)


def _handlers(client: Any, event: str) -> list[str]:
    handlers: list[Any] = [*client.meta.events._emitter._handlers.prefix_search(event)]
    # What others add to each session, as Powertools does, comes before the built-in ones here.
    return sorted(str(getattr(handler, "__qualname__", type(handler))) for handler in handlers)


@pytest.mark.parametrize("place", ["variable", "home"])
def test_models_of_the_user_s_own_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str) -> None:
    if place == "variable":
        monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    monkeypatch.setattr(Loader, "CUSTOMER_DATA_PATH", str(tmp_path))
    monkeypatch.setattr(_lean_client, "_Loader", lambda _: pytest.fail("not needed"))
    client = make_service_client("sqs")
    assert str(tmp_path) in client._loader.search_paths
