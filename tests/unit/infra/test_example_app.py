"""The example app as the CLI runs it, and code of the documentation that a user deploys: they do what pages say."""

from __future__ import annotations

import base64
import filecmp
import hashlib
import hmac
import io
import json
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aws_cdk import App, Stack, Validations
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from cdk_nag import AwsSolutionsChecks

from cdk_dynamodb_counters import DedupCounterTable, EventIngest
from counters_lambda.counting.crossings import event_entry
from examples.stacks import stacks
from tests.unit.handlers.test_notifier import ARN, BUSY, crossed
from tests.unit.infra.declared import VIEW
from tests.unit.infra.support import CONTEXT, PROJECT, copy_of_project, granted, new_stack, specs, synthesized

SOURCES = ("LICENSE", "app.py", "cdk.json", "infra", "lambdas")
STACKS = tuple(stacks())
OUTPUTS: dict[str, set[str]] = {"CountersBlog": {"ApiId", "InboxUrl"}, "CountersOrders": {"SourceTableName"}}

# Runs the app as the CLI does, then prints the loaded modules.
RUN = "import runpy, sys; runpy.run_path('app.py', run_name='__main__'); print(*sys.modules)"


def synthesize(directory: Path, output: Path) -> list[str]:
    """Run app.py as the CLI does and return the names of the modules it loaded."""
    environment = os.environ | {"CDK_OUTDIR": str(output), "CDK_CONTEXT_JSON": json.dumps(CONTEXT)}
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All stacks, checked by cdk-nag."""
    output = tmp_path_factory.mktemp("cdk.out")
    app = App(context=CONTEXT, outdir=str(output))
    for name, stack in stacks().items():
        stack(app, name)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()
    return output


def test_cdk_nag_finds_nothing_that_is_not_acknowledged_with_a_reason(assembly: Path) -> None:
    plugins = json.loads((assembly / "validation-report.json").read_text())["pluginReports"]
    assert "AwsSolutions" in [plugin["pluginName"] for plugin in plugins]
    for plugin in plugins:
        assert plugin["conclusion"] == "success", plugin
        assert plugin["violations"] == []
        for finding in plugin.get("suppressedViolations", []):
            assert len(finding["reason"]) > 10, finding


@pytest.mark.parametrize("stack", STACKS)
def test_outputs_are_a_contract(assembly: Path, stack: str) -> None:
    template = json.loads((assembly / f"{stack}.template.json").read_text())
    assert set(template["Outputs"]) == {"TableName", "AggregatorName", "AggregatorLogGroup"} | OUTPUTS.get(stack, set())


@pytest.mark.night
def test_templates_and_assets_are_the_same_in_every_clone(tmp_path: Path) -> None:
    here, other = tmp_path / "here.out", tmp_path / "other.out"
    loaded = synthesize(PROJECT, here)
    assert {"demo", "ministack"}.isdisjoint(name.partition(".")[0] for name in loaded)
    clone = copy_of_project(tmp_path / "elsewhere" / "a longer way down", *SOURCES)
    for root in ("infra", "lambdas"):
        subprocess.run([sys.executable, "-m", "compileall", "-q", root], cwd=clone, check=True)
    (clone / "lambdas" / "dynamodb_counters" / ".hypothesis").mkdir()
    doctests = ["pytest", "-q", "--doctest-modules", "lambdas/dynamodb_counters/_items/conditions.py"]
    subprocess.run([sys.executable, "-m", *doctests], cwd=clone, check=True, capture_output=True)
    synthesize(clone, other)
    names = sorted(path.relative_to(here) for path in here.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(other) for path in other.rglob("*") if path.is_file())
    compared = [str(name) for name in names if "template" in name.name or "asset" in str(name)]
    assert any(name.startswith("asset.") for name in compared)
    assert filecmp.cmpfiles(here, other, compared, shallow=False) == (compared, [], [])


_DOCS = PROJECT / "docs"
_OLD = "arn:aws:sqs:us-east-1:123456789012:Blog-IngestQueue"
_ORIGIN, _SIGNING_KEY = "from-cloudfront", "signs-tokens"


def _token(customer: str, key: str = _SIGNING_KEY) -> str:
    return f"{customer}.{hmac.new(key.encode(), customer.encode(), hashlib.sha256).hexdigest()}"


def test_the_authorizer_knows_customers_by_their_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, code = re.findall(r"```python\n(.*?)```", (_DOCS / "threat-model.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {"self": new_stack(region="us-east-1")}
    exec(code, names)
    client = SimpleNamespace(get_secret_value=lambda **request: {"SecretString": request["SecretId"]})
    monkeypatch.setitem(sys.modules, "boto3", SimpleNamespace(client=lambda _: client))
    monkeypatch.setenv("ORIGIN", _ORIGIN)
    monkeypatch.setenv("SIGNING_KEY", _SIGNING_KEY)
    function: dict[str, Any] = {}
    exec(names["AUTHORIZER"], function)

    def authorize(token: str, origin: str) -> Any:
        return function["handler"]({"headers": {"authorization": token, "x-origin-verify": origin}}, None)

    for customer in ("c1", "with.dots.", "ümlaut", "a#b"):
        expected = {"isAuthorized": True, "context": {"customer": customer}}
        assert authorize(_token(customer), _ORIGIN) == expected
    right = _token("c1")
    for token in (_token("c1", "guessed"), right.replace("c1", "c2"), "c1", "c1.", "", ".", "c1.ü"):
        assert authorize(token, _ORIGIN)["isAuthorized"] is False, token
    for origin in ("guessed", "", "ü"):
        assert authorize(right, origin)["isAuthorized"] is False, origin


def test_step_1_lets_the_new_consumer_read_the_old_queue(stack: Stack) -> None:
    page = (_DOCS / "http.md").read_text().partition("### Renaming and moving")[2]
    [code] = re.findall(r"(?ms)^1\. .*?```python\n(.*?)```", page)
    counters = DedupCounterTable(stack, "Counters")
    names: dict[str, Any] = {"self": stack, "counters": counters, "VIEW": VIEW}
    exec(textwrap.dedent(code), names | {"EventIngest": EventIngest, "HttpIamAuthorizer": HttpIamAuthorizer})
    template = synthesized(stack)
    new, old = sorted(specs(template, "AWS::Lambda::EventSourceMapping"), key=lambda row: row["EventSourceArn"] == _OLD)
    assert old["EventSourceArn"] == _OLD
    for name in ("FunctionName", "FunctionResponseTypes"):
        assert old[name] == new[name]
    allowed = {action for action, resource in granted(template) if resource == _OLD}
    assert {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"} <= allowed


def test_the_documentation_shows_what_the_example_deploys() -> None:
    page = (_DOCS / "existing-tables.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:3]
    example = PROJECT / "infra" / "examples"
    code = {line.strip() for name in ("orders", "stacks") for line in (example / f"{name}.py").read_text().split("\n")}
    assert len(blocks) == 3
    assert [line for block in blocks for line in block.split("\n") if line.strip() not in code] == []


def test_the_signer_of_the_documentation_sends_what_standard_webhooks_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    """https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md says how."""
    page = (_DOCS / "thresholds.md").read_text()
    [code] = re.findall(r'SIGNER = """(.*?)"""', page, re.DOTALL)
    key, requests = b"a key of any bytes", list[Any]()

    def send(request: Any, timeout: int) -> io.BytesIO:
        requests.append(request)
        return io.BytesIO()

    secret = "whsec_" + base64.b64encode(key).decode()
    client = SimpleNamespace(get_secret_value=lambda **_: {"SecretString": secret})
    monkeypatch.setitem(sys.modules, "boto3", SimpleNamespace(client=lambda _: client))
    monkeypatch.setenv("SECRET", "webhook")
    monkeypatch.setenv("URL", "https://example.com/hooks")
    monkeypatch.setattr("urllib.request.urlopen", send)
    function: dict[str, Any] = {}
    exec(code, function)
    [record] = crossed(BUSY)
    detail = json.loads(event_entry(record["dynamodb"]["NewImage"], ARN, "")["Detail"])
    function["handler"]({"detail": detail}, None)
    [request] = requests
    headers = {name.lower(): value for name, value in request.header_items()}
    assert (request.get_method(), request.full_url) == ("POST", "https://example.com/hooks")
    assert json.loads(request.data) == {"type": "threshold.crossed", "timestamp": detail["at"], "data": detail}
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.data
    assert headers["webhook-id"] == detail["id"]
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    assert headers["webhook-signature"] == "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
