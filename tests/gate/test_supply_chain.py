"""Packages that we install, build and deploy are locked, listed and the same every time; a release does what it may."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
import yaml
from packaging.markers import Marker

from cdk_dynamodb_counters import _staging
from scripts import lambda_asset, part_of_lock, release_check
from tests.unit.infra.support import PROJECT, copy_of_project

_SOURCES = ("hatch_build.py", "README.md", "infra", "lambdas")
_FOLDERS = ("infra", "lambdas")
_LOCKS = ("requirements.txt", "package-lock.json")
_PINNED = re.compile(
    r"(?m)^([\w.-]+)(?:\[[^]]*\])?==([^ ;\\\n]+)(?: ; ([^\\\n]*[^\\\n ]))?( \\\n    --hash=sha256:[0-9a-f]{64})?"
)

_REQUIREMENT = re.compile(r"([\w-]+)>=([\d.]+)")
_BESIDE = ("hypothesis==", "moto[", "pytest==")
"""Packages that only the tests' templates need."""
_PROGRAM = """
import sys
sys.path[:0] = ["infra", "lambdas", "."]
from tests.gate.templates import templates
print(len(templates()), "templates")
"""


def pinned(name: str) -> dict[str, re.Match[str]]:
    matches = _PINNED.finditer((PROJECT / name).read_text())
    return {re.sub(r"[-_.]+", "-", match[1]).lower(): match for match in matches}


def project(folder: str) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((PROJECT / folder / "pyproject.toml").read_text())["project"]
    return table


@pytest.mark.parametrize("name", ["requirements", "requirements-nightly", "requirements-release"])
def test_everything_is_locked_with_hashes(name: str) -> None:
    lock, requirements = pinned(f"{name}.txt"), pinned(f"{name}.in")
    assert requirements
    assert {name: lock[name][2] for name in requirements} == {name: match[2] for name, match in requirements.items()}
    assert [name for name, match in lock.items() if not match[4]] == []
    text = (PROJECT / f"{name}.txt").read_text()
    # Packages that are built on installation would be built by tools that are not locked.
    assert "--only-binary :all:" in text
    assert "://" not in text


def test_both_locks_have_the_same_versions() -> None:
    lock, release = pinned("requirements.txt"), pinned("requirements-release.txt")
    assert [name for name in lock.keys() & release if lock[name][2] != release[name][2]] == []


def test_installed_packages_are_the_locked_ones() -> None:
    lock = pinned("requirements.txt")
    here = {name: match for name, match in lock.items() if match[3] is None or Marker(match[3]).evaluate()}
    assert {name: version(name) for name in here} == {name: match[2] for name, match in here.items()}


def test_the_wheel_is_built_by_the_locked_tool() -> None:
    required = [tomllib.loads((PROJECT / folder / "pyproject.toml").read_text())["build-system"] for folder in _FOLDERS]
    tool = [f"hatchling=={pinned('requirements.txt')['hatchling'][2]}"]
    assert [system["requires"] for system in required] == [tool, tool]


def test_both_distributions_have_one_version_and_licence() -> None:
    library = project("lambdas")
    assert project("infra")["version"] == library["version"]
    assert f"dynamodb-counters[lambda]=={library['version']}" in project("infra")["dependencies"]
    assert {(PROJECT / folder / "LICENSE").read_text() for folder in _FOLDERS} == {(PROJECT / "LICENSE").read_text()}


def test_the_demo_installs_a_part_of_the_lock_that_is_whole() -> None:
    lock = (PROJECT / "requirements.txt").read_text()
    part = part_of_lock.part_of_lock(lock, part_of_lock.needs())
    assert "--only-binary :all:" in part
    assert set(part.splitlines()) <= set(lock.splitlines())
    names = {re.sub(r"[-_.]+", "-", match[1]).lower(): match for match in _PINNED.finditer(part)}
    assert {"aws-cdk-lib", "jsii", "urllib3", "ministack", "hypercorn"} <= names.keys()
    assert {"cdk-nag", "pytest", "moto", "mypy", "playwright"}.isdisjoint(names)
    assert [name for name, match in names.items() if not match[4]] == []


def test_npm_checks_what_it_installs() -> None:
    packages = json.loads((PROJECT / "package-lock.json").read_text())["packages"]
    manifest = json.loads((PROJECT / "package.json").read_text())
    kinds = ("dependencies", "devDependencies")
    root = packages.pop("")
    assert {kind: root[kind] for kind in kinds} == {kind: manifest[kind] for kind in kinds}
    needed = {name: package["version"] for name, package in packages.items() if not package.get("optional")}
    expected = manifest["dependencies"] | manifest["devDependencies"]
    assert {name.removeprefix("node_modules/"): version for name, version in needed.items()} == expected
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())


def test_the_list_of_the_asset_is_the_asset() -> None:
    assert lambda_asset.LIST.read_text() == lambda_asset.contents(), "make lambda-asset"
    staged = _staging.stage("")
    listed = re.findall(r"\| (`[\w`, ]+`) \| (.*) \|", lambda_asset.LIST.read_text())
    modules = {name for names, _ in listed for name in re.findall(r"\w+", names)}
    names = {path.name.removesuffix(".py") for path in staged.iterdir()}
    assert names - {"__pycache__"} == {"licenses", *modules}
    licences = {name for _, files in listed for name in re.findall(r"`([^`]+)`", files)}
    assert {str(path.relative_to(staged)) for path in (staged / "licenses").rglob("*") if path.is_file()} == licences
    assert all(re.search("copyright|permission|licen[cs]e|@", (staged / name).read_text(), re.I) for name in licences)
    assert len({name.split("/")[1] for name in licences}) == len(listed)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[list[Path]]:
    """Wheels of both distributions, built in different places from copies with other times and permissions."""
    builds: list[list[Path]] = []
    for place, mask in (("a", 0o022), ("a longer way down", 0o077)):
        root = tmp_path_factory.mktemp("build") / place
        before = os.umask(mask)
        try:
            copy_of_project(root, *_SOURCES, *_LOCKS)
            command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist"]
            runs = [
                subprocess.run([*command, folder], cwd=root, capture_output=True, text=True, check=False)
                for folder in _FOLDERS
            ]
        finally:
            os.umask(before)
        assert all(done.returncode == 0 for done in runs), [done.stdout + done.stderr for done in runs]
        builds.append(sorted((root / "dist").glob("*.whl")))
    return builds


@pytest.mark.night
def test_two_builds_are_byte_identical(wheels: list[list[Path]]) -> None:
    for first, second in zip(*wheels, strict=True):
        with zipfile.ZipFile(first) as archive, zipfile.ZipFile(second) as other:
            assert archive.namelist() == other.namelist()
            assert [name for name in archive.namelist() if archive.read(name) != other.read(name)] == []
        assert first.read_bytes() == second.read_bytes()


@pytest.fixture(scope="module", params=[0, 1], ids=["constructs", "library"])
def bill(wheels: list[list[Path]], request: pytest.FixtureRequest) -> dict[str, Any]:
    with zipfile.ZipFile(wheels[0][request.param]) as wheel:
        [name] = [name for name in wheel.namelist() if ".dist-info/sboms/" in name]
        document: dict[str, Any] = json.loads(wheel.read(name))
        return document


@pytest.mark.night
def test_the_bill_of_materials_is_valid(bill: dict[str, Any]) -> None:
    cyclonedx = pytest.importorskip("cyclonedx.schema", reason="`make nightly` installs it")
    directory = Path(cyclonedx.__file__).parent / "_res"

    def schema(name: str) -> Any:
        return json.loads((directory / name.rpartition("/")[2].replace(".schema", ".SNAPSHOT.schema")).read_text())

    published = {"http": lambda uri: schema(uri.replace(".SNAPSHOT", ""))}
    definition = schema(f"bom-{bill['specVersion']}.schema.json")
    # The formats that it names are more than the library knows.
    check = fastjsonschema.compile(definition, handlers=published, use_formats=False)
    check(bill)
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        check({**bill, "components": [{"name": "typeless"}]})


def test_the_bill_lists_what_is_needed_and_what_is_brought_along(bill: dict[str, Any]) -> None:
    components = {component["name"]: component["version"] for component in bill["components"]}
    if bill["metadata"]["component"]["name"] == "cdk-dynamodb-counters":
        script = json.loads((PROJECT / "package.json").read_text())["devDependencies"]
        assert components.pop("uplot") == script["uplot"]
        assert components.pop("dynamodb-counters") == project("lambdas")["version"]
        # All that the asset holds, and what is only brought along.
        assert {"aws-lambda-powertools", "jmespath", "typing-extensions", "jsii"} <= {*components}
    else:
        assert {"aws-lambda-powertools", "aws-cdk-lib", "click", "jsii"}.isdisjoint(components)
    lock = pinned("requirements.txt")
    assert components == {name: lock[name][2] for name in components}
    assert {"botocore", "urllib3", "tzdata"} <= {*components}
    assert {"pytest", "moto", "hatchling", "ruff"}.isdisjoint(components)
    refs = {bill["metadata"]["component"]["bom-ref"], *(component["bom-ref"] for component in bill["components"])}
    assert {ref for part in bill["dependencies"] for ref in (part["ref"], *part["dependsOn"])} == refs


def oldest() -> dict[str, str]:
    """Return the lowest version of each dependency."""
    library = project("lambdas")
    extras = [text for name in ("cli", "lambda") for text in library["optional-dependencies"][name]]
    matches = map(_REQUIREMENT.match, [*library["dependencies"], *extras, *project("infra")["dependencies"]])
    return {match[1]: match[2] for match in matches if match}


def test_the_page_says_which_cdk_is_the_oldest() -> None:
    assert f"`aws-cdk-lib` {oldest()['aws-cdk-lib']} or newer" in (PROJECT / "docs" / "concepts.md").read_text()


@pytest.mark.skipif("NIGHT" not in os.environ, reason="installs the oldest dependencies: set NIGHT=1")
def test_the_oldest_dependencies_build_every_template(tmp_path: Path) -> None:
    venv.create(tmp_path, with_pip=True)
    python = str(tmp_path / "bin" / "python")
    requirements = [f"{name}=={version}" for name, version in oldest().items()]
    others = [line for line in (PROJECT / "requirements.in").read_text().splitlines() if line.startswith(_BESIDE)]
    for arguments in (["-m", "pip", "install", "--quiet", *requirements, *others], ["-B", "-c", _PROGRAM]):
        done = subprocess.run([python, *arguments], cwd=PROJECT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    assert "templates" in done.stdout


_TEXT = (PROJECT / ".github" / "workflows" / "release.yml").read_text()
_WORKFLOW: dict[Any, Any] = yaml.safe_load(_TEXT)
_RELEASED = "## [1.2.3] - 2026-11-26"
_STEPS = [step for job in _WORKFLOW["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize(
    ("head", "tag", "says"),
    [
        ("## [Unreleased]", "v1.2.3", "head of CHANGELOG.md='Unreleased': expected '## [1.2.3] - DATE'"),
        ("## [1.2.2] - 2026-11-01", None, "head of CHANGELOG.md='1.2.2': expected"),
        ("## [1.2.3]", "v1.2.3", "expected a date"),
        ("## [1.2.3] - 2026-11-26", "v1.2.4", "tag='v1.2.4': expected 'v1.2.3'"),
        ("## [1.2.3] - 2026-11-26", "1.2.3", "tag='1.2.3': expected 'v1.2.3'"),
        ("none", None, "head of CHANGELOG.md=None"),
    ],
)
def test_versions_that_differ_are_refused(head: str, tag: str | None, says: str) -> None:
    with pytest.raises(release_check.ReleaseError, match=re.escape(says)):
        release_check.check_versions("1.2.3", f"# Changelog\n\n{head}\n", tag)
    for right, of in (("## [Unreleased]", None), (_RELEASED, None), (_RELEASED, "v1.2.3")):
        release_check.check_versions("1.2.3", f"# Changelog\n\n{right}\n\n## [1.2.2] - 2026-11-01\n", of)


def test_the_changelog_begins_as_a_release_may() -> None:
    release_check.check_versions(project("lambdas")["version"], (PROJECT / "CHANGELOG.md").read_text(), None)


def test_files_left_behind_are_found() -> None:
    wheel = ["counters_cli/a.py", "dynamodb_counters/testing/a.py", "dynamodb_counters-0.1.0.dist-info/METADATA"]
    wheel += ["cdk_dynamodb_counters-0.1.0.dist-info/licenses/LICENSE"]
    rest = ["tests/a.py", "dynamodb_counters/__pycache__/a.pyc", "dynamodb_counters/node_modules/a.js", "examples/a.py"]
    assert release_check.strangers([*wheel, *rest], release_check._IN_WHEEL) == rest


def test_only_the_tag_of_a_version_starts_a_release_which_has_the_fewest_permissions() -> None:
    # YAML reads the key `on` as true.
    assert _WORKFLOW[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}
    assert _WORKFLOW["permissions"] == {}
    permissions = {name: job["permissions"] for name, job in _WORKFLOW["jobs"].items()}
    assert permissions == {"check": {"contents": "read"}, "publish": {"attestations": "write", "id-token": "write"}}
    assert "secrets." not in _TEXT


def test_a_release_is_checked_by_the_target_before_it_is_attested_and_published() -> None:
    [command] = [step for step in _STEPS if "run" in step]
    assert command == {"run": "make release-check", "env": {"TAG": "${{ github.ref_name }}"}}
    assert re.search(r"(?m)^release-check:.* ## ", (PROJECT / "Makefile").read_text())
    publish = _WORKFLOW["jobs"]["publish"]
    assert (publish["needs"], publish["environment"]) == ("check", "release")
    attested, published = publish["steps"][-2:]
    assert attested["uses"].startswith("actions/attest@")
    assert attested["with"] == {"subject-path": "dist/*"}
    assert published["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert published["with"] == {"attestations": True}


def test_actions_of_a_release_are_pinned_to_a_commit() -> None:
    lines = re.findall(r"(?m)uses: (.*)$", _TEXT)
    assert len(lines) == sum("uses" in step for step in _STEPS) > 0
    assert [line for line in lines if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []
