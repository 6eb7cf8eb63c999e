"""The page about windows shows what the code does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[3]


def test_the_table_and_the_picture_are_those_of_the_code() -> None:
    script = _ROOT / "docs" / "figures" / "windows.py"
    environment = {**os.environ, "PYTHONPATH": str(_ROOT / "lambdas")}
    done = subprocess.run([sys.executable, str(script), "--check"], env=environment, capture_output=True, check=False)

    assert done.returncode == 0, done.stderr.decode()
