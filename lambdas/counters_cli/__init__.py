"""The command `counters`, for an operator: it never ships."""

from __future__ import annotations

import sys


def run() -> int:
    """Run the command, or say how to install what it needs."""
    try:
        from counters_cli.main import main  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write('error: the command needs the extra `cli`: pip install "dynamodb-counters[cli]"\n')
        return 2
    return main()
