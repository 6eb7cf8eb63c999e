"""Rules of a release: one version everywhere, nothing left behind, and a workflow that may do no more than it must."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

from scripts import release_check
from tests.unit.infra.support import PROJECT

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
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    release_check.check_versions(version, (PROJECT / "CHANGELOG.md").read_text(), None)


def test_files_left_behind_are_found() -> None:
    wheel = ["dynamodb_counters/testing/a.py", "cdk_dynamodb_counters-0.1.0.dist-info/licenses/LICENSE"]
    left = ["tests/a.py", "dynamodb_counters/__pycache__/a.pyc", "dynamodb_counters/node_modules/a.js", "examples/a.py"]
    assert release_check.strangers([*wheel, *left, "examples/a.py"], release_check._IN_WHEEL) == [
        *left,
        "examples/a.py",
    ]
    sdist = ["p-1/infra/cdk_dynamodb_counters/a.py", "p-1/LICENSE", "p-1/requirements.txt"]
    left = ["p-1/infra/examples/a.py", "p-1/lambdas/other/a.py", "p-1/app.py", "p-1/docs/LICENSE"]
    assert release_check.strangers([*sdist, *left], release_check._IN_SDIST) == left


def test_only_the_tag_of_a_version_starts_a_release() -> None:
    # YAML reads the key `on` as true.
    assert _WORKFLOW[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}


def test_permissions_of_a_release_are_the_fewest() -> None:
    assert _WORKFLOW["permissions"] == {}
    assert {name: job["permissions"] for name, job in _WORKFLOW["jobs"].items()} == {
        "check": {"contents": "read"},
        "publish": {"attestations": "write", "id-token": "write"},
    }
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
