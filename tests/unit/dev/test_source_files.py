"""A change of a source file is noticed once, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynamodb_counters._dev import cdk
from dynamodb_counters._dev.emulator import Emulator
from dynamodb_counters._dev.source_files import SourceFiles


def test_files_that_are_written_added_or_removed_are_reported_once(tmp_path: Path) -> None:
    app, page = tmp_path / "app.py", tmp_path / "site" / "index.html"
    page.parent.mkdir()
    app.write_text("1")
    page.write_text("a")
    files = SourceFiles(tmp_path)
    assert files.changed() == []

    app.write_text("2")
    os.utime(app, ns=(0, 1))
    page.unlink()
    (tmp_path / "more.py").touch()

    assert files.changed() == ["app.py", "more.py", "site/index.html"]
    assert files.changed() == []


def test_files_that_are_no_source_are_left_out(tmp_path: Path) -> None:
    files = SourceFiles(tmp_path)
    for name in ("cdk.out/a.json", "node_modules/b.js", ".git/c.py", "env/pyvenv.cfg", "env/d.py", "__pycache__/e.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    for name in ("orders.jsonl", "orders.jsonl.progress", "cdk.context.json"):
        (tmp_path / name).touch()

    assert files.changed() == []


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """An app that imports a module, reads a file, has an asset of a folder, and tests and data that it does not use."""
    directory = tmp_path / "app"
    for name, text in {
        "app.py": "import _files_read, shop.declared\nopen('settings.json')\nopen('written.json', 'w').write('{}')",
        "shop/declared.py": "",
        "settings.json": "{}",
        "functions/own.py": "def handler(): ...",
        "orders.json": "[1]",
        "tests/test_shop.py": "def test(): ...",
        "tests/__init__.py": "",
        "cdk.json": '{"app": "python3 app.py"}',
        "site/page.ts": "1",
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


@pytest.fixture
def emulator(tmp_path: Path) -> Emulator:
    """The directory of an emulator to which the app was deployed, with a copy of its asset."""
    asset = tmp_path / "emulator" / "cdk-x" / "asset.5f0c"
    asset.mkdir(parents=True)
    (asset / "own.py").write_text("def handler(): ...")
    (asset / "__init__.py").touch()
    return Emulator(0, tmp_path / "emulator", "KEY")


def _run(app: Path, emulator: Emulator) -> None:
    constructs = Path(__file__).parents[3] / "infra" / "cdk_dynamodb_counters"
    environment = cdk._environment(emulator) | {"PYTHONPATH": str(constructs)}
    for _ in range(2):  # The second time, its modules are cached.
        done = subprocess.run([sys.executable, "app.py"], cwd=app, env=environment, check=True, capture_output=True)
        assert (done.stdout, done.stderr) == (b"", b"")


def _saved(app: Path, files: SourceFiles, *names: str) -> list[str]:
    for name in names:
        with (app / name).open("a") as opened:
            opened.write(" ")
    return files.changed()


def test_files_that_an_app_reads_or_has_in_an_asset_are_looked_at_alone(app: Path, emulator: Emulator) -> None:
    files = SourceFiles(app)
    _run(app, emulator)
    files.deployed(emulator.directory)
    files.changed()
    used = ["app.py", "cdk.json", "functions/own.py", "settings.json", "shop/declared.py", "site/page.ts"]

    assert _saved(app, files, *used, "orders.json", "tests/test_shop.py", "tests/__init__.py", "written.json") == used
    assert _saved(app, files, "functions/__init__.py", "more.json", "tests/test_more.py") == ["functions/__init__.py"]


def test_everything_is_looked_at_while_an_app_cannot_be_deployed_or_was_not_observed(
    app: Path, emulator: Emulator
) -> None:
    files = SourceFiles(app)
    files.deployed(emulator.directory)
    assert _saved(app, files, "tests/test_shop.py") == ["tests/test_shop.py"]
    _run(app, emulator)
    files.deployed(emulator.directory)
    files.deployed(None)
    files.changed()
    assert _saved(app, files, "tests/test_shop.py") == ["tests/test_shop.py"]
