"""The pictures of the pages are those that their programs draw."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).parents[2]
DRAWN: Final = ("backfill", "change", "correction", "gaps", "pages", "quota", "redelivery", "tenants", "windows")


@pytest.mark.parametrize("program", ["pictures.py", "windows.py"])
def test_pictures_and_tables_are_those_of_the_code(program: str) -> None:
    script = _ROOT / "docs" / "figures" / program
    environment = {**os.environ, "PYTHONPATH": str(_ROOT / "lambdas")}
    done = subprocess.run([sys.executable, str(script), "--check"], env=environment, capture_output=True, check=False)

    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("name", DRAWN)
def test_pages_describe_a_picture_by_its_own_label(name: str) -> None:
    drawn = re.search(r'role="img" aria-label="([^"]+)"', (_ROOT / "docs" / "figures" / f"{name}.svg").read_text())
    pages = [_ROOT / "README.md", *(_ROOT / "docs").rglob("*.md")]
    shown = {
        alt for page in pages for alt in re.findall(rf"!\[([^\]]*)\]\([^)]*figures/{name}\.svg\)", page.read_text())
    }

    assert drawn is not None
    assert shown == {unescape(drawn[1])}
