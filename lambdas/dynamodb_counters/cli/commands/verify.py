"""``counters verify`` and ``counters repair``: compare counts with what their source items come to; add what lacks."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import click
from rich.console import Group, RenderableType
from rich.text import Text

from dynamodb_counters._backfill.verification import EXPIRED, Verification
from dynamodb_counters.cli.arguments import Within
from dynamodb_counters.cli.commands.backfill import require_kind
from dynamodb_counters.cli.failures import DONE, FOUND, UNKNOWN
from dynamodb_counters.cli.runs import Worked, runner_of, with_manner, work_off
from dynamodb_counters.cli.session import Session, options, shared, with_dry_run
from dynamodb_counters.cli.show.formats import BAD, GOOD, QUIET, WARNING, counted, grid, group_text, number, span
from dynamodb_counters.errors import BackfillError

_MOST_ROWS: Final = 100

_verifying: Final = options(
    click.argument("names", nargs=-1, metavar="[NAME]…"),
    with_manner,
    click.option("--sample", type=Within(0, 1, min_open=True), default=1.0, help="Share of the groups to compare."),
)


@click.command()
@_verifying
@shared
def verify(session: Session, **options: Any) -> int:
    """Recompute counts from their source items while traffic flows, and show where they differ.

    By default all declarations that count everything there is. Exit code 1: counts have drifted. Exit code 4: none
    has for certain, but some are unknown from the source items.
    """
    return _compare(session, "verify", repairs=False, **options)


@click.command()
@_verifying
@with_dry_run
@click.option("--unknown", is_flag=True, help="Repair also groups that may count what has expired: they lose that.")
@shared
def repair(session: Session, *, dry_run: bool, unknown: bool, **options: Any) -> int:
    """Verify, show the differences, and add to each group what it lacks, once, during live updates.

    Exit code 1: counts have drifted, and not all of them were repaired. Exit code 4: all were, and groups are left
    that are unknown from the source items.
    """
    return _compare(session, "repair", repairs=not dry_run, unknown=unknown, **options)


def _compare(
    session: Session, said: str, *, repairs: bool, yes: bool = False, unknown: bool = False, **manner: Any
) -> int:
    """Verify, show the differences, repair if asked to; the exit code."""
    if repairs and not yes and not session.has_person():
        # Before the work, not after it.
        session.confirm("", yes=False)
    if manner["run"]:
        if manner["names"]:
            raise click.UsageError("--run goes on with what the run began with: no names")
        require_kind(manner["run"], "verify")
    verification = runner_of(session, Verification, **manner)
    sample = manner["sample"]
    worked = work_off(session, verification, said if sample == 1 else f"{said} --sample {sample:g}")
    if worked.was_complete:
        raise BackfillError(f"run {worked.run} is complete, and has reported what it found: begin another one")
    drifted, expired = verification.groups("drift"), verification.groups("unknown", EXPIRED)
    found = FOUND if drifted else UNKNOWN if verification.differences else DONE
    done = partial(_document, worked, verification)
    if not repairs or not (drifted or expired):
        session.emit(done(None), _shown(worked, verification))
        return found
    if not session.as_json or not yes:
        session.err.print(_shown(worked, verification))
    if drifted and not session.confirm(f"Add what is missing to {counted(drifted, 'group')}?", yes=yes):
        session.emit(done(None), "nothing repaired")
        return FOUND
    question = f"{counted(expired, 'group')} may count what has expired. Set each to what its sources show, too?"
    unknown = bool(expired) and (unknown or (not yes and session.confirm(question, yes=False)))
    repaired, refused = verification.repair(unknown=unknown)
    told = f"{counted(repaired, 'group')} repaired"
    told += f"; {counted(refused, 'group')} left: repaired by another run meanwhile, verify again" if refused else ""
    session.emit(done((repaired, refused)), told)
    left = verification.groups("unknown") - (expired if unknown else 0) + verification.groups("waiting")
    return FOUND if refused else UNKNOWN if left else DONE


def _shown(worked: Worked, verification: Verification) -> RenderableType:
    found = verification.differences
    drifted, unknown = verification.groups("drift"), verification.groups("unknown")
    waiting = verification.groups("waiting")
    cannot = f", {number(unknown)} of {number(verification.compared)} cannot be verified"
    total = Text.assemble(
        f"{counted(verification.compared, 'group')} compared: ",
        (f"{number(drifted)} drifted", BAD) if drifted else ("none drifted", GOOD),
        (cannot if unknown else "", WARNING),
        (f", {number(waiting)} wait for the quarantine" if waiting else "", WARNING),
        (f"; {span(worked.seconds)}, {number(round(worked.units))} units", QUIET),
    )
    if not found:
        return total
    rows = [(difference, *each) for difference in found for each in difference.missing.items()]
    columns = ("declaration", "group", "attribute", "missing", "verdict")
    shown = grid(*columns, numbers=("missing",), keep=("declaration", "attribute"))
    for difference, attribute, missing in rows[:_MOST_ROWS]:
        group = group_text(difference.group) or "in total"
        signed = f"{'+' if missing > 0 else ''}{number(missing)}"
        told = f"{difference.verdict}: {difference.reason}" if difference.reason else difference.verdict
        verdict = Text(told, BAD if difference.verdict == "drift" else WARNING)
        shown.add_row(difference.name, group, attribute, signed, verdict)
    rest = [Text(f"{number(len(rows) - _MOST_ROWS)} more; --json has all", QUIET)] if len(rows) > _MOST_ROWS else []
    return Group(shown, *rest, total)


def _document(worked: Worked, verification: Verification, repaired: tuple[int, int] | None) -> dict[str, Any]:
    return {
        **worked.document(),
        "compared": verification.compared,
        "differences": [
            {
                "declaration": difference.name,
                "values": dict(difference.group),
                "missing": dict(difference.missing),
                "verdict": difference.verdict,
                "reason": difference.reason or None,
            }
            for difference in verification.differences
        ],
        "repaired": None if repaired is None else repaired[0],
        "refused": None if repaired is None else repaired[1],
    }
