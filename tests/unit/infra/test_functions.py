"""Functions: options bring the permissions they need, no more; names differ; the asset is whole and always the same."""

from __future__ import annotations

import json
import marshal
import os
import re
import subprocess
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any

import pytest
from aws_cdk import App, NestedStack, Stack, Stage
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.aws_lambda import FunctionOptions

import dynamodb_counters
from cdk_dynamodb_counters import (
    CounterApi,
    DedupCounterTable,
    EventIngest,
    StreamAggregator,
    ThresholdEvents,
    _staging,
)
from cdk_dynamodb_counters._functions import VARIABLES
from cdk_dynamodb_counters._staging import runtime_code, stage, staged_code
from counters_lambda.handlers import api as page
from tests.unit.infra.support import PROJECT, build, granted, new_app, private_vpc, specs, synthesized

CONSTRUCTS = (StreamAggregator, ThresholdEvents, EventIngest, CounterApi)


def test_keys_network_and_log_group_may_be_of_another_stack() -> None:
    app = new_app()
    shared, stack = Stack(app, "Shared"), Stack(app, "Test")
    key, logged = kms.Key(shared, "Key"), logs.LogGroup(shared, "Logs")
    more = {"MORE": "yes"}
    options = FunctionOptions(log_group=logged, environment=more, environment_encryption=key, vpc=private_vpc(shared))
    counters = DedupCounterTable(stack, "Counters")
    for construct in CONSTRUCTS:
        build(construct, stack, table=counters, function_options=options)
    template = synthesized(stack)
    variables = [spec["Environment"]["Variables"] for spec in specs(template, "AWS::Lambda::Function")]
    assert all(more.items() <= values.items() for values in variables)
    assert sum(action.startswith("kms:") for action, _ in granted(template)) == 5
    own = stack.resolve(logged.log_group_arn)
    assert [resource for action, resource in granted(template) if action.startswith("logs:") and resource != own] == []
    template.resource_count_is("AWS::Logs::LogGroup", 0)


@pytest.mark.parametrize("mode", ["validated", "direct"])
def test_a_boundary_holds_for_every_role(mode: str, stack: Stack) -> None:
    boundary = iam.ManagedPolicy(stack, "Boundary", statements=[iam.PolicyStatement(actions=["*"], resources=["*"])])
    counters = DedupCounterTable(stack, "Counters")
    for construct in CONSTRUCTS:
        more = {"mode": mode} if construct is EventIngest else {}
        iam.PermissionsBoundary.of(build(construct, stack, table=counters, **more)).apply(boundary)
    roles = specs(synthesized(stack), "AWS::IAM::Role")
    # In direct mode, one is CDK's own: API Gateway assumes it to send to the queue.
    assert [role.get("PermissionsBoundary") for role in roles] == [stack.resolve(boundary.managed_policy_arn)] * 5


def test_all_variables_are_known_that_handlers_read() -> None:
    root = Path(dynamodb_counters.__file__).parent
    paths = [path for path in root.rglob("*.py") if not {"cli", "_dev"} & {*path.parts}]
    reading = re.compile(r'environ(?:\.get\(|\[)"(\w+)"|"(\w+)" in os\.environ')
    names = {name for path in paths for pair in reading.findall(path.read_text()) for name in pair if name}
    assert names - {"AWS_ACCESS_KEY_ID", "PATH"} <= {*VARIABLES}


@pytest.mark.parametrize("construct", [StreamAggregator, CounterApi])
def test_a_memory_of_nothing_is_no_default(stack: Stack, counters: DedupCounterTable, construct: Any) -> None:
    build(construct, stack, table=counters, function_options=FunctionOptions(memory_size=0))
    functions = [child for child in stack.node.find_all() if isinstance(child, lambda_.CfnFunction)]
    assert {function.memory_size for function in functions} == {0}  # For CloudFormation to refuse.


_LONGEST = "x" * (255 - len("Test/"))
_REFUSED = ("Zähler", "Zöhler", "x" * 250 + "a", "x" * 250 + "b", "日本", "東京")


def test_a_stage_and_a_nested_stack_are_named_as_deployed() -> None:
    stack = Stack(Stage(new_app(), "Dev"), "Counters")
    nested = NestedStack(stack, "Nested")
    assert build(StreamAggregator, nested).service_name == "Dev-Counters/Nested/Aggregator"


def test_a_name_that_cloudwatch_would_refuse_is_made_one_it_takes(stack: Stack, counters: DedupCounterTable) -> None:
    names = [build(CounterApi, stack, construct_id=name, table=counters).service_name for name in (*_REFUSED, _LONGEST)]
    assert names.pop() == f"Test/{_LONGEST}"
    assert len({*names}) == len(_REFUSED)
    assert [name for name in names if not re.fullmatch(r"[\x20-\x7e]{1,255}", name)] == []


IMPORTED = ("dynamodb_counters._declarations", "aws_lambda_powertools.logging", "aws_lambda_powertools.metrics")


def run_isolated(program: str) -> str:
    """Run a program with only the standard library and what it adds to the path itself."""
    command = [sys.executable, "-S", "-E", "-B", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def add_function(stack: Stack, code: lambda_.Code) -> lambda_.Function:
    return lambda_.Function(stack, "Function", code=code, handler="index.handler", runtime=lambda_.Runtime.PYTHON_3_14)


@pytest.fixture(scope="module")
def asset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    app = App(outdir=str(tmp_path_factory.mktemp("cdk.out")))
    stack = Stack(app, "Test")
    add_function(stack, runtime_code())
    lambda_.LayerVersion(stack, "Layer", code=runtime_code(prefix="python"))
    directory = Path(app.synth().directory)
    [code] = [path for path in directory.glob("asset.*") if (path / "dynamodb_counters").is_dir()]
    return code


def test_page_code_adds_the_page_and_its_library_with_the_licence(asset: Path, tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path))
    add_function(Stack(app, "Test"), staged_code(page=True))
    [code] = [path for path in Path(app.synth().directory).glob("asset.*") if path.is_dir()]
    added = {str(path.relative_to(code)) for path in code.rglob("*") if path.is_file()}
    added -= {str(path.relative_to(asset)) for path in asset.rglob("*") if path.is_file()}
    assert added == {f"counters_lambda/page/{name}" for name in (*page.FILES, "uplot.LICENSE")}


def test_an_asset_that_lambda_s_python_makes_holds_its_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_staging, "runtime", lambda: SimpleNamespace(name=f"python3.{sys.version_info.minor}"))
    first, second = (stage.__wrapped__("") for _ in range(2))
    sources = sorted(path.relative_to(first) for path in first.rglob("*.py"))
    assert PurePath("counters_lambda/handlers/aggregator.py") in sources
    for source in sources:
        bytecode = Path(cache_from_source(str(source)))
        content = (first / bytecode).read_bytes()
        assert content == (second / bytecode).read_bytes(), source
        assert content[:4] == MAGIC_NUMBER
        # Python reads the source where its hash is another.
        assert content[4:16] == (3).to_bytes(4, "little") + source_hash((first / source).read_bytes())
        assert marshal.loads(content[16:]).co_filename == f"/{source}"
        assert (first / bytecode).stat().st_mode & 0o777 == 0o644


def test_an_asset_of_another_python_holds_sources_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_staging, "runtime", lambda: SimpleNamespace(name="python3.9"))
    assert not [*stage.__wrapped__("").rglob("__pycache__")]


def test_the_chart_library_is_the_published_one() -> None:
    package = PROJECT / "node_modules" / "uplot"
    if not package.is_dir():
        pytest.skip("the committed uPlot is compared with the published one: npm ci")
    ours = PROJECT / "infra" / "cdk_dynamodb_counters" / "page"
    pairs = {"uplot.js": "dist/uPlot.iife.min.js", "uplot.css": "dist/uPlot.min.css", "uplot.LICENSE": "LICENSE"}
    assert [name for name, file in pairs.items() if (ours / name).read_text() != (package / file).read_text()] == []


def test_holds_sources_and_licences_only(asset: Path) -> None:
    others = {path for path in asset.rglob("*") if path.is_file() and path.suffix != ".py"}
    assert {path.relative_to(asset).parts[0] for path in others} == {"licenses"}
    assert not (asset / "counters_cli").exists()
    assert not (asset / "dynamodb_counters" / "testing").exists()
    assert sum(path.stat().st_size for path in asset.rglob("*.py")) < 3_000_000


def test_files_are_staged_alike_whatever_the_umask_is() -> None:
    usual = os.umask(0o077)
    try:
        staged = stage.__wrapped__("python")
    finally:
        os.umask(usual)
    assert {path.stat().st_mode & 0o777 for path in staged.rglob("*") if path.is_file()} == {0o644}


def test_layer_holds_the_same_under_python(asset: Path) -> None:
    [layer] = [path for path in asset.parent.glob("asset.*") if (path / "python").is_dir()]
    names = {path.relative_to(asset) for path in asset.rglob("*.py")}
    assert {path.relative_to(layer / "python") for path in layer.rglob("*.py")} == names


def test_needs_nothing_that_is_not_in_it(asset: Path) -> None:
    run_isolated(f"import sys; sys.path.insert(0, {str(asset)!r}); import {', '.join(IMPORTED)}")


def test_handler_loads_with_what_lambda_adds(asset: Path) -> None:
    [site] = [path for path in map(Path, sys.path) if (path / "boto3").is_dir()]
    program = (
        f"import sys, json; sys.path.insert(0, {str(asset)!r}); sys.path.append({str(site)!r})\n"
        "from counters_lambda.handlers import aggregator, api, ingest_queue\n"
        "import os; os.environ['AWS_DEFAULT_REGION'] = 'us-east-1'; import counters_lambda.handlers.ingest_http\n"
        "print(json.dumps({n: m.__file__ for n, m in sys.modules.items() if getattr(m, '__file__', None)}))"
    )
    loaded = json.loads(run_isolated(program).splitlines()[-1])
    packages = {"counters_lambda", "dynamodb_counters", "aws_lambda_powertools"}
    ours = [name for name in loaded if name.partition(".")[0] in packages]
    assert ours
    assert all(loaded[name].startswith(str(asset)) for name in ours)
