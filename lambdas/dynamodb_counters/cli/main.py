"""The command ``counters``: its commands, and how it ends."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

import click

from dynamodb_counters.cli import commands
from dynamodb_counters.cli.session import DONE, FAULT, PIPE_CLOSED, WRONG_INPUT, Session, told, with_shared_options

_SECTIONS: Final = {
    "Read": ("get", "series", "top", "events", "explain"),
    "Write": ("accept", "wait", "retract", "replay", "erase"),
    "Repair": ("verify", "repair", "quarantine"),
    "Operate": ("describe", "thresholds", "backfill", "drop", "dev", "diff"),
}


class _InSections(click.Group):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click passes it
        for title, names in _SECTIONS.items():
            with formatter.section(title):
                most = formatter.width - 20
                formatter.write_dl([(name, self.commands[name].get_short_help_str(most)) for name in names])


_CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


@click.group(cls=_InSections, context_settings=_CONTEXT)
@click.version_option(package_name="cdk-dynamodb-counters", prog_name="counters")
@with_shared_options
def counters() -> None:
    """Look after a table of counters: what it counts, how much, and whether all is well.

    Exit codes: 0 done; 1 done, and something was found, or you said no; 2 wrong input; 3 AWS refused or cannot be
    reached; 130 interrupted.
    """


for _found in iter_modules(commands.__path__):
    for _made in vars(import_module(f"{commands.__name__}.{_found.name}")).values():
        # A group's own commands are in none of the sections.
        if isinstance(_made, click.Command) and any(_made.name in names for names in _SECTIONS.values()):
            counters.add_command(_made)


def main(arguments: Sequence[str] | None = None, session: Session | None = None) -> int:
    """Run a command; what fails is one line on standard error, and an exit code."""
    session = session or Session()
    try:
        code = counters.main(arguments, prog_name="counters", standalone_mode=False, obj=session)
        return code if isinstance(code, int) else DONE
    except click.exceptions.NoArgsIsHelpError as error:
        for line in error.format_message().split("\n"):
            session.tell(line)
        return WRONG_INPUT
    except BrokenPipeError:
        # Python flushes standard output once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - each has its exit code
        # Only a user who asks for a traceback sees it.
        code, line = told(error)
        if code == FAULT and os.environ.get("COUNTERS_DEBUG"):
            # Not raised: Python would print what the message holds as it is.
            for part in traceback.format_exc().split("\n"):
                session.tell(part)
        session.tell(f"error: {line}")
        return code


if __name__ == "__main__":
    sys.exit(main())
