"""A change of a source file is noticed once, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

from dynamodb_counters._dev.cdk import SourceFiles


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
    for name in (
        "cdk.out/a.json",
        "node_modules/b.js",
        ".git/c.py",
        "env/pyvenv.cfg",
        "env/d.py",
        "__pycache__/e.py",
        "tests/f.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    for name in ("orders.jsonl", "test_app.py", "cdk.context.json"):
        (tmp_path / name).touch()

    assert files.changed() == []
