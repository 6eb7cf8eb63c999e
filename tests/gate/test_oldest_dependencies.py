"""The oldest dependencies that pyproject.toml allows build every template; an older CDK does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Final

import pytest

_PROJECT: Final = Path(__file__).parents[2]
_REQUIREMENT: Final = re.compile(r"([\w-]+)>=([\d.]+)")
_BESIDE: Final = ("hypothesis==", "moto[", "pytest==")
"""Packages that only the tests' templates need."""
_PROGRAM: Final = """
import sys
sys.path[:0] = ["infra", "lambdas", "."]
from tests.gate.templates import templates
print(len(templates()), "templates")
"""


def oldest() -> dict[str, str]:
    """The lowest version of each dependency."""
    project = tomllib.loads((_PROJECT / "pyproject.toml").read_text())["project"]
    found = (_REQUIREMENT.match(requirement) for requirement in project["dependencies"])
    return {match[1]: match[2] for match in found if match}


def test_the_page_says_which_cdk_is_the_oldest() -> None:
    assert f"`aws-cdk-lib` {oldest()['aws-cdk-lib']} or newer" in (_PROJECT / "docs" / "faq.md").read_text()


@pytest.mark.skipif("NIGHT" not in os.environ, reason="installs the oldest dependencies: set NIGHT=1")
def test_the_oldest_dependencies_build_every_template(tmp_path: Path) -> None:
    venv.create(tmp_path, with_pip=True)
    python = str(tmp_path / "bin" / "python")
    wanted = [f"{name}=={version}" for name, version in oldest().items()]
    pinned = [line for line in (_PROJECT / "requirements.in").read_text().splitlines() if line.startswith(_BESIDE)]
    _run(python, "-m", "pip", "install", "--quiet", *wanted, *pinned)
    assert "templates" in _run(python, "-B", "-c", _PROGRAM)


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    sys.stdout.write(done.stdout)
    return done.stdout
