"""Note which files an app reads, for `counters dev`, which deploys it again when these change."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from typing import Any

_noted = os.environ.get("COUNTERS_FILES_READ")
# Python forgets at the end which file it has run.
_read: set[str | None] = {getattr(sys.modules["__main__"], "__file__", None)}


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str) and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
        _read.add(arguments[0])


def _write(noted: str) -> None:
    # Modules may have been read before, or from a cache.
    modules: set[str | None] = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    with Path(noted).open("a", encoding="utf-8") as out:
        out.writelines(f"{Path(path).absolute()}\n" for path in _read | modules if path is not None)


if _noted is not None:
    sys.addaudithook(_note)
    atexit.register(_write, _noted)
