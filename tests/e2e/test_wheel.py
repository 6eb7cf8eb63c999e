"""The built wheels, in environments of their own: a service, and an app that knows nothing of this repository."""

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


SERVICE = """
import sys
from dynamodb_counters import Aggregate, Counters, Event
from dynamodb_counters.testing import counters_in_memory

VIEW = Event("view", key=("url", "time"), attributes={"url": str, "time": str})
VIEWS = Aggregate("views", VIEW, by="url")
with counters_in_memory([VIEWS]) as counters:
    counters.accept(VIEW, {"url": "/", "time": "10:00"})
    print(counters.get(VIEWS, url="/")["views"], *{"aws_cdk", "click", "aws_lambda_powertools"} & sys.modules.keys())
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    output = tmp_path_factory.mktemp("dist")
    for folder in ("lambdas", "infra"):
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", output, PROJECT / folder]
        done = execute(command)
        assert done.returncode == 0, done.stdout + done.stderr
    return {file.name.partition("-")[0]: file for file in output.glob("*.whl")}


def environment(home: Path, *wheels: Path) -> Path:
    """Return the interpreter of a fresh environment with wheels in it."""
    venv.create(home, with_pip=False)
    interpreter = home / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet", "--no-deps", *wheels]
    done = execute(command)
    assert done.returncode == 0, done.stderr
    # Its dependencies are those installed here: downloading CDK again would take minutes and prove nothing more. Python
    # searches a path named in a .pth file, but reads no .pth files there: an editable install stays out of it.
    (site_packages(home) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return interpreter


@pytest.fixture(scope="module")
def library(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("service") / "venv", wheels["dynamodb_counters"])


@pytest.fixture(scope="module")
def python(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("foreign") / "venv", *wheels.values())


def site_packages(home: Path) -> Path:
    [directory] = home.glob("lib/python*/site-packages")
    return directory


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
    # A function never runs the command line, or tests.
    for package in ("counters_lambda", "dynamodb_counters"):
        installed = site_packages(home) / package
        names = {path.relative_to(installed) for path in installed.rglob("*.py")}
        names -= {name for name in names if name.parts[0] in ("testing", "_pytest_plugin.py")}
        assert names == {path.relative_to(asset / package) for path in asset.glob(f"{package}/**/*.py")}
    assert not (asset / "counters_cli").exists()


@pytest.mark.e2e
def test_a_service_counts_with_the_library_alone(library: Path, tmp_path: Path) -> None:
    assert run(library, SERVICE, tmp_path) == "1"


@pytest.mark.e2e
def test_the_wheel_installs_the_command(library: Path) -> None:
    command = library.with_name("counters")
    done = execute([command, "--version"])
    assert (done.returncode, done.stderr) == (0, "")
    [information] = site_packages(library.parents[1]).glob("*.dist-info")
    assert done.stdout == f"counters, version {Distribution.at(information).version}\n"


@pytest.mark.e2e
def test_the_command_says_which_extra_it_lacks(library: Path, tmp_path: Path) -> None:
    program = "import sys; sys.modules['click'] = None; from counters_cli import run; sys.exit(run())"
    done = execute([library, "-c", program], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'error: the command needs the extra `cli`: pip install "dynamodb-counters[cli]"\n'


@pytest.mark.e2e
def test_wheels_hold_typed_packages_and_ask_for_what_they_import(python: Path) -> None:
    packages = site_packages(python.parents[1])
    names = {path.name for path in packages.iterdir() if path.is_dir() and not path.name.endswith(".dist-info")}
    assert names == {"cdk_dynamodb_counters", "counters_cli", "counters_lambda", "dynamodb_counters"}
    assert all((packages / name / "py.typed").is_file() for name in names)
    of_library, of_constructs = (
        [Requirement(text) for text in Distribution.at(next(packages.glob(f"{name}-*.dist-info"))).requires or ()]
        for name in ("dynamodb_counters", "cdk_dynamodb_counters")
    )
    assert {requirement.name for requirement in of_library if not requirement.marker} == {"boto3", "tzdata"}
    assert {requirement.name for requirement in of_constructs} == {"aws-cdk-lib", "constructs", "dynamodb-counters"}
    for requirement in (*of_library, *of_constructs):
        if requirement.name != "dynamodb-counters":
            assert requirement.specifier.contains(version(requirement.name)), requirement
