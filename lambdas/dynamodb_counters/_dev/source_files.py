"""Changed files of an app, by their times and sizes: nothing to install, and the same on every system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_SUFFIXES: Final = (".css", ".html", ".js", ".json", ".jsx", ".mjs", ".py", ".toml", ".ts", ".tsx", ".yaml", ".yml")
_NO_SOURCES: Final = frozenset(("__pycache__", "build", "cdk.out", "dist", "node_modules", "tests"))
_WRITTEN_BY_THE_CLI: Final = "cdk.context.json"


class SourceFiles:
    """The source files below a directory; tests, virtual environments and hidden folders are left out."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory.resolve()
        self._known = dict(self._stamps())

    def changed(self) -> list[str]:
        now, before = dict(self._stamps()), self._known
        self._known = now
        return sorted({name for name, _ in now.items() ^ before.items()})

    def _stamps(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for folder, folders, names in os.walk(self._directory):
            folders[:] = [name for name in folders if not self._is_left_out(Path(folder, name))]
            for name in names:
                path = Path(folder, name)
                if name.endswith(_SUFFIXES) and not name.startswith("test_") and name != _WRITTEN_BY_THE_CLI:
                    try:
                        found = path.stat()
                    except OSError:
                        # Gone since it was listed.
                        continue
                    yield str(path.relative_to(self._directory)), (found.st_mtime_ns, found.st_size)

    @staticmethod
    def _is_left_out(folder: Path) -> bool:
        return folder.name in _NO_SOURCES or folder.name.startswith(".") or (folder / "pyvenv.cfg").exists()
