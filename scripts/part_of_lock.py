"""Print the part of requirements.txt that some packages need, or the demo. Needs Python alone."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

_PROJECT: Final = Path(__file__).resolve().parents[1]
_FOLDERS: Final = ("lambdas", "infra")
_BESIDE: Final = ("uv",)
"""What installs all."""


def part_of_lock(lock: str, roots: set[str]) -> str:
    """Return the entries of a lock for what is wanted, and for all that this brings along."""
    head, *entries = re.split(r"(?m)^(?=[\w.-]+(?:\[[^]]*\])?==)", lock)
    names = {entry: _normalized(entry) for entry in entries}
    by = {
        entry: {_normalized(name) for name in re.findall(r"(?m)^ +# +(?:via +)?([\w.-]+)$", entry)} for entry in entries
    }
    result = set(roots)
    while more := {names[entry] for entry in entries if by[entry] & result} - result:
        result |= more
    return head + "".join(entry for entry in entries if names[entry] in result)


def needs() -> set[str]:
    """Return the names of what the packages need, and of what only the demo needs."""
    library, constructs = (
        tomllib.loads((_PROJECT / folder / "pyproject.toml").read_text())["project"] for folder in _FOLDERS
    )
    extras = library["optional-dependencies"]
    texts = (*library["dependencies"], *constructs["dependencies"], *extras["lambda"], *extras["dev"], *_BESIDE)
    return {_normalized(text) for text in texts}


def _normalized(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    assert match is not None
    return re.sub(r"[-_.]+", "-", match[0]).lower()


if __name__ == "__main__":
    print(
        part_of_lock((_PROJECT / "requirements.txt").read_text(encoding="utf-8"), set(sys.argv[1:]) or needs()), end=""
    )
