"""``python -m simulation.replay``: record the runs again and write docs/survive.html."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from simulation.replay.page import assembled, recording

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "survive.html"

if __name__ == "__main__":
    PAGE.write_text(assembled(recording()))
    print(f"wrote {PAGE.relative_to(Path.cwd()) if PAGE.is_relative_to(Path.cwd()) else PAGE}")
