"""The command ``counters``: its commands, and how it ends."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

import click

from counters_cli.commands.accept import accept, erase, wait
from counters_cli.commands.backfill import backfill, drop, verify
from counters_cli.commands.describe import describe, diff
from counters_cli.commands.dev import dev
from counters_cli.commands.get import events, explain, get
from counters_cli.commands.quarantine import quarantine
from counters_cli.session import DONE, FAULT, WRONG_INPUT, Session, ending, with_shared_options

_COMMANDS: Final = (get, events, explain, accept, wait, erase, verify, quarantine, describe, backfill, drop, diff, dev)
_CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


@click.group(context_settings=_CONTEXT, commands=_COMMANDS)
@click.version_option(package_name="dynamodb-counters", prog_name="counters")
@with_shared_options
def counters() -> None:
    """Look after a table of counters: what it counts, how much, and whether all is well.

    Exit codes: 0 done; 1 done, and something was found, or you said no; 2 wrong input; 3 AWS refused or cannot be
    reached; 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None, session: Session | None = None) -> int:
    """Run a command; what fails is one line on standard error, and an exit code."""
    session = session or Session()
    try:
        code = counters.main(arguments, prog_name="counters", standalone_mode=False, obj=session)
        return code if isinstance(code, int) else DONE
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return WRONG_INPUT
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - each has its exit code
        # Only a user who asks for a traceback sees it.
        code, line = ending(error)
        if code == FAULT and os.environ.get("COUNTERS_DEBUG"):
            # Not raised: Python would print what the message holds as it is.
            for part in traceback.format_exc().split("\n"):
                session.tell(part)
        session.tell(f"error: {line}")
        return code


if __name__ == "__main__":
    sys.exit(main())
