"""The built wheel, in an environment of its own and an app that knows nothing of this repository."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import venv
from importlib.metadata import Distribution, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.integration.waiting import execute

PROJECT = Path(__file__).resolve().parents[2]

FOREIGN_APP = """
import json, sys
from datetime import timedelta

import cdk_dynamodb_counters, dynamodb_counters
from aws_cdk import App, Stack
from aws_cdk import aws_lambda as lambda_
from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator, WindowedCounter, runtime_code
from dynamodb_counters import Aggregate, Count, Event, Window

ORDER = Event("order", pk="SHOP#{shop}", sk="ORDER#{id}")
ORDERS = Aggregate("orders", ORDER, pk="SHOP#{shop}", sk="TOTAL", measures={"orders": Count()})
LAST_DAY = Window("last_day", ORDER, pk="SHOP#{shop}", time="at", retention=timedelta(hours=25))

app = App(outdir="out", analytics_reporting=False)
stack = Stack(app, "Foreign")
counters = DedupCounterTable(stack, "Counters")
StreamAggregator(stack, "Aggregator", table=counters, aggregates=[ORDERS])
WindowedCounter(stack, "LastDay", table=counters, window=LAST_DAY)
writer = lambda_.Function(
    stack, "Writer", runtime=lambda_.Runtime.PYTHON_3_13, handler="index.handler",
    code=lambda_.Code.from_inline("import dynamodb_counters"),
    layers=[lambda_.LayerVersion(stack, "Layer", code=runtime_code(prefix="python"))],
)
counters.grant_accept(writer, ORDER)
app.synth()
print(json.dumps([cdk_dynamodb_counters.__file__, dynamodb_counters.__file__, *sys.path]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("dist")
    done = execute([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", output, PROJECT])
    assert done.returncode == 0, done.stdout + done.stderr
    [built] = output.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of a fresh environment with the wheel in it."""
    home = tmp_path_factory.mktemp("foreign") / "venv"
    venv.create(home, with_pip=False)
    interpreter = home / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet", "--no-deps", wheel]
    done = execute(command)
    assert done.returncode == 0, done.stderr
    # Its dependencies are those installed here: downloading CDK again would take minutes and prove nothing more. Python
    # searches a path named in a .pth file, but reads no .pth files there: an editable install stays out of it.
    (site_packages(home) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return interpreter


def site_packages(home: Path) -> Path:
    [found] = home.glob("lib/python*/site-packages")
    return found


def run(python: Path, program: str, directory: Path) -> str:
    # Most of the time would go into rules that only warn here.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = execute([python, "-I", "-c", program], cwd=directory, env=environment | {"CDK_VALIDATION": "false"})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.e2e
@pytest.mark.night
def test_foreign_app_composes_the_constructs(python: Path, tmp_path: Path) -> None:
    paths = json.loads(run(python, FOREIGN_APP, tmp_path))
    home = python.parents[1]
    assert all(path.startswith(str(site_packages(home))) for path in paths[:2])
    assert {str(PROJECT), str(PROJECT / "infra"), str(PROJECT / "lambdas")}.isdisjoint(paths)
    template: dict[str, Any] = json.loads((tmp_path / "out" / "Foreign.template.json").read_text())
    resources = list(template["Resources"].values())
    types = [resource["Type"] for resource in resources]
    assert types.count("AWS::DynamoDB::GlobalTable") == 1
    assert types.count("AWS::Lambda::EventSourceMapping") == 1
    assert types.count("AWS::Lambda::LayerVersion") == 1
    [counting] = [r["Properties"] for r in resources if r["Properties"].get("Runtime") == "python3.14"]
    asset = tmp_path / "out" / f"asset.{counting['Code']['S3Key'].removesuffix('.zip')}"
    assert (asset / Path(*counting["Handler"].split(".")[:-1]).with_suffix(".py")).is_file()
    installed = site_packages(home) / "dynamodb_counters"
    # A function never runs the command line, or tests.
    outside = {
        path.relative_to(installed)
        for folder in ("cli", "_dev", "testing")
        for path in (*installed.glob(f"{folder}/**/*.py"), installed / "_pytest_plugin.py")
    }
    assert len(outside) > 1
    assert {path.relative_to(installed) for path in installed.rglob("*.py")} - outside == {
        path.relative_to(asset / "dynamodb_counters") for path in asset.glob("dynamodb_counters/**/*.py")
    }


@pytest.mark.e2e
def test_the_wheel_installs_the_command(python: Path) -> None:
    done = execute([python.with_name("counters"), "--version"])
    assert (done.returncode, done.stderr) == (0, "")
    [information] = site_packages(python.parents[1]).glob("*.dist-info")
    assert done.stdout == f"counters, version {Distribution.at(information).version}\n"


@pytest.mark.e2e
def test_wheel_holds_two_typed_packages_and_asks_for_what_they_import(python: Path) -> None:
    packages = site_packages(python.parents[1])
    names = {path.name for path in packages.iterdir() if path.is_dir() and not path.name.endswith(".dist-info")}
    assert names == {"cdk_dynamodb_counters", "dynamodb_counters"}
    assert all((packages / name / "py.typed").is_file() for name in names)
    [information] = packages.glob("*.dist-info")
    required = [Requirement(text) for text in Distribution.at(information).requires or ()]
    assert {"aws-cdk-lib", "constructs", "aws-lambda-powertools", "boto3"} <= {r.name for r in required if not r.marker}
    for requirement in required:
        if not requirement.marker:
            assert requirement.specifier.contains(version(requirement.name)), requirement
