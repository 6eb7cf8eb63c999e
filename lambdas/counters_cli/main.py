"""The command ``counters``: its commands, and how it ends."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

import click

from counters_cli.accept import accept, erase, wait
from counters_cli.backfill import backfill, drop, verify
from counters_cli.describe import describe, diff
from counters_cli.dev import dev
from counters_cli.get import events, explain, get
from counters_cli.quarantine import quarantine
from counters_cli.session import SHARED, Exit, Session, ending

_COMMANDS: Final = (get, events, explain, accept, wait, erase, verify, quarantine, describe, backfill, drop, diff, dev)
_CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


@click.group(context_settings=_CONTEXT, commands=_COMMANDS)
@click.version_option(package_name="dynamodb-counters", prog_name="counters")
def counters() -> None:
    """Look after a table of counters: what it counts, how much, and whether all is well.

    Exit codes: 0 done; 1 done, and something was found, or you said no; 2 wrong input; 3 AWS refused or cannot be
    reached; 4 done, and some counts cannot be verified; 70 a fault of the command; 130 interrupted.
    """


counters.params += SHARED


def main(arguments: Sequence[str] | None = None, session: Session | None = None) -> int:
    """Run a command; what fails is one line on standard error, and an exit code."""
    session = session or Session()
    try:
        code = counters.main(arguments, prog_name="counters", standalone_mode=False, obj=session)
        return code if isinstance(code, int) else Exit.SUCCESS
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return Exit.WRONG_INPUT
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - each has its exit code
        code, line = ending(error)
        if code == Exit.FAULT and os.environ.get("COUNTERS_DEBUG"):
            # Not raised: Python would print what the message holds as it is.
            session.tell(*traceback.format_exc().split("\n"))
        session.tell(f"error: {line}")
        return code


if __name__ == "__main__":
    sys.exit(main())
