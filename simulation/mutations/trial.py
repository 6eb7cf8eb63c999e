"""The process that runs tests of a copy of the project, with what is not the project's already loaded."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).parents[2]
_UNSET: Final = ("NIGHT", "PYTHONPATH")
_LONGEST_SECONDS: Final = 300  # A test that does not end ends its process, by SIGALRM.


class _Order:
    """A plugin that runs tests in the order of the arguments, whatever file they are in."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._places = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self._places.get(item.nodeid, 0))

    def pytest_runtest_logstart(self) -> None:
        signal.alarm(_LONGEST_SECONDS)


def run_tests(root: Path, arguments: Sequence[str], output: Path, compiles: bool) -> None:
    """Run tests of a copy, print into a file, and end this process with pytest's status."""
    for descriptor, file in ((0, os.devnull), (1, output), (2, output)):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC), descriptor)
    os.chdir(root)
    for name in _UNSET:
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # Plugins take longer than most tests.
    sys.dont_write_bytecode = not compiles
    # The tests must import the copy, not what this process was started with.
    sys.path[:] = [str(root), *(path for path in sys.path if Path(path) != _ROOT)]
    for name in [name for name in sys.modules if name.split(".")[0] == "simulation"]:
        del sys.modules[name]
    sys.exit(int(pytest.main(["-q", "-p", "no:cacheprovider", *arguments], plugins=[_Order(arguments)])))
