"""``python -m demo.cli_examples`` writes the examples of docs/cli.md anew."""

from __future__ import annotations

from demo.cli_examples.blog import seeded
from demo.cli_examples.page import PAGE, filled

if __name__ == "__main__":
    with seeded() as blog:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), blog), encoding="utf-8")
