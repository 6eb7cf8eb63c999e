"""``counters repair``: verify, and add to the groups what they lack."""

from __future__ import annotations

from typing import Any

import click

from dynamodb_counters.cli.commands.verify import compare, verifying
from dynamodb_counters.cli.session import Session, shared


@click.command()
@verifying
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Write nothing: the same as verify.")
@click.option("--unknown", is_flag=True, help="Repair also groups that may count what has expired: they lose that.")
@shared
def repair(session: Session, *, dry_run: bool, unknown: bool, **options: Any) -> int:
    """Verify, show the differences, and add to each group what it lacks, once, during live updates.

    Exit code 1: counts have drifted, and not all of them were repaired. Exit code 4: all were, and groups are left
    that are unknown from the source items.
    """
    return compare(session, "repair", repairs=not dry_run, unknown=unknown, **options)
