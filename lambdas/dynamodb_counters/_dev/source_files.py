"""Changed files of an app, by their times and sizes: nothing to install, and the same on every system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FILES_READ: Final = "files-read"
"""File in an emulator's directory: the paths of what the app's processes have read."""

_BUNDLED: Final = frozenset((".css", ".html", ".js", ".jsx", ".mjs", ".ts", ".tsx"))
"""Assets may hold these otherwise than they are written."""
_SUFFIXES: Final = _BUNDLED | {".json", ".py", ".toml", ".yaml", ".yml"}
_NO_SOURCES: Final = frozenset(("__pycache__", "build", "cdk.out", "dist", "node_modules"))
_WRITTEN_BY_THE_CLI: Final = "cdk.context.json"


class SourceFiles:
    """The source files below a directory; virtual environments and hidden folders are left out."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory.resolve()
        self._known = dict(self._stamps())
        self._used: frozenset[Path] | None = None

    def deployed(self, workplace: Path | None) -> None:
        """Look from now on at what the app has read, and at folders of its assets, as an emulator's directory shows."""
        # Without that directory, or while what was read is unknown, look at everything.
        if workplace is None or not (workplace / FILES_READ).exists():
            self._used = None
            return
        read = {Path(line).resolve() for line in (workplace / FILES_READ).read_text(encoding="utf-8").splitlines()}
        written = (path for path in workplace.glob("cdk-*/**/*") if path.suffix in _SUFFIXES and path.is_file())
        staged = {path.read_bytes() for path in written}
        sizes = set(map(len, staged)) - {0}
        alike = [self._directory / name for name, (_, size) in self._known.items() if size in sizes]
        self._used = frozenset(read | {path.parent for path in alike if path.exists() and path.read_bytes() in staged})

    def changed(self) -> list[str]:
        now, before = dict(self._stamps()), self._known
        self._known = now
        return sorted({name for name, _ in now.items() ^ before.items() if self._is_used(self._directory / name)})

    def _is_used(self, path: Path) -> bool:
        if self._used is None or path.suffix in _BUNDLED or path == self._directory / "cdk.json":
            return True
        return not self._used.isdisjoint((path, *path.parents))

    def _stamps(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for folder, folders, names in os.walk(self._directory):
            folders[:] = [name for name in folders if not self._is_left_out(Path(folder, name))]
            for name in names:
                path = Path(folder, name)
                if path.suffix in _SUFFIXES and name != _WRITTEN_BY_THE_CLI:
                    try:
                        found = path.stat()
                    except OSError:
                        # Gone since it was listed.
                        continue
                    yield str(path.relative_to(self._directory)), (found.st_mtime_ns, found.st_size)

    @staticmethod
    def _is_left_out(folder: Path) -> bool:
        return folder.name in _NO_SOURCES or folder.name.startswith(".") or (folder / "pyvenv.cfg").exists()
