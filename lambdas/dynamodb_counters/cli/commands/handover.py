"""``counters handover``: let another aggregator count the table."""

from __future__ import annotations

import click

from dynamodb_counters._control.control import hand_over, read_control
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.session import Session, shared


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared
def handover(session: Session, *, yes: bool) -> int:
    """Let another aggregator than the one that counts the table take over: that of another stack, or a moved one.

    Remove the old one first. Records in the stream wait.
    """
    known = read_control(session.table).aggregator
    if not known:
        session.emit({"from": None}, "no aggregator is recorded: the next one takes over")
        return DONE
    if not session.confirm(f"{known!r} counts this table. Let the next aggregator take over?", yes=yes):
        return FOUND
    hand_over(session.table)
    session.emit({"from": known}, f"{known!r} has handed over: the next aggregator takes over")
    return DONE
