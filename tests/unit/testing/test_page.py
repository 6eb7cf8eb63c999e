"""docs/testing.md: its blocks are the files of an app, and its tests pass as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    blocks = BLOCK.findall((PROJECT / "docs" / "testing.md").read_text())
    for language, text in blocks:
        name = re.match(r"# (\w+\.py)\n", text)
        assert language == "python"
        assert name is not None, text
        (tmp_path / name[1]).write_text(text)
    assert len([*tmp_path.iterdir()]) == len(blocks)
    return tmp_path


def test_the_tests_of_the_page_pass(app: Path) -> None:
    roots = os.pathsep.join(str(PROJECT / root) for root in ("lambdas", "infra"))
    plugin = ["-p", "dynamodb_counters._pytest_plugin"]

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, "--snapshot-update", "."]
    # Within a worker of xdist, syrupy writes nothing.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = outside | {"PYTHONPATH": roots, "CDK_VALIDATION": "false"}
    done = subprocess.run(command, cwd=app, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    # A release would change nothing in the snapshot.
    snapshot = (app / "stack.json").read_text()
    assert "<hash>" in snapshot
    assert not re.search("[0-9a-f]{64}", snapshot)
