"""``python -m demo.cli_examples`` rewrites the examples of the pages; ``--pictures`` the pictures, too."""

from __future__ import annotations

import sys
from pathlib import Path

# A clone is enough, as for app.py: the runtime need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lambdas"))

from demo.cli_examples.page import PAGES, filled, workplace

if __name__ == "__main__":
    with workplace() as blog:
        for page in PAGES:
            page.write_text(filled(page.read_text(encoding="utf-8"), blog), encoding="utf-8")
    if "--pictures" in sys.argv:
        from demo.cli_examples.pictures import take_pictures

        take_pictures()
