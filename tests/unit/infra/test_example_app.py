"""The example app as the CLI runs it: no findings, and the same output wherever it is synthesized."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from examples.stacks import stacks
from tests.unit.infra.support import CONTEXT, PROJECT

SOURCES = ("LICENSE", "app.py", "cdk.json", "infra", "lambdas")
STACKS = tuple(stacks())
OUTPUTS: dict[str, set[str]] = {"CountersBlog": {"ApiId", "InboxUrl"}, "CountersOrders": {"SourceTableName"}}

# Runs the app as the CLI does, then prints the loaded modules.
RUN = "import runpy, sys; runpy.run_path('app.py', run_name='__main__'); print(*sys.modules)"


def synthesize(directory: Path, output: Path) -> list[str]:
    """Run app.py as the CLI does and return the names of the modules it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=directory,
        env=os.environ | {"CDK_OUTDIR": str(output), "CDK_CONTEXT_JSON": json.dumps(CONTEXT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


def copy_of_project(target: Path) -> Path:
    target.mkdir(parents=True)
    for name in SOURCES:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(PROJECT / name, target / name)
    return target


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
    clone = copy_of_project(tmp_path / "elsewhere" / "a longer way down")
    for root in ("infra", "lambdas"):
        subprocess.run([sys.executable, "-m", "compileall", "-q", root], cwd=clone, check=True)
    (clone / "lambdas" / "dynamodb_counters" / ".hypothesis").mkdir()
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--doctest-modules", "lambdas/dynamodb_counters/_items/conversions.py"],
        cwd=clone,
        check=True,
        capture_output=True,
    )
    synthesize(clone, other)
    names = sorted(path.relative_to(here) for path in here.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(other) for path in other.rglob("*") if path.is_file())
    compared = [str(name) for name in names if "template" in name.name or "asset" in str(name)]
    assert any(name.startswith("asset.") for name in compared)
    assert filecmp.cmpfiles(here, other, compared, shallow=False) == (compared, [], [])
