"""Note the files that a Python app reads or imports: its process imports this module as `sitecustomize`.

It is a file of its own, without this package, in a folder on PYTHONPATH.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

_read: set[str] = set()


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str) and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
        _read.add(os.path.abspath(arguments[0]))  # noqa: PTH100 - pathlib opens nothing, but is slow to import


def _write() -> None:
    # Cached code may be all that was opened of a module.
    modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    with open(os.environ["COUNTERS_FILES_READ"], "a", encoding="utf-8") as out:  # noqa: PTH123
        out.writelines(f"{path}\n" for path in {*_read, *filter(None, modules)})


if __name__ == "sitecustomize":
    sys.addaudithook(_note)
    atexit.register(_write)
    # The machine's own module of the name comes next.
    sys.path.remove(os.path.dirname(__file__))  # noqa: PTH120
    own = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        sys.modules["sitecustomize"] = own
