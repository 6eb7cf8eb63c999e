"""``counters backfill``, ``drop``, ``verify`` and ``repair``: commands that read the whole table, in runs."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

import click
from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.text import Text

from dynamodb_counters._assumptions import GIVEN_UP_SETTLED
from dynamodb_counters._backfill.backfill import Backfill, Dropping
from dynamodb_counters._backfill.runner import COMPLETE, Runner
from dynamodb_counters._backfill.verification import EXPIRED, SETTLING, Verification
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._declarations import Aggregate, Declaration, Event
from dynamodb_counters._declarations.groups import with_below
from dynamodb_counters.cli.output import (
    BAD,
    GOOD,
    QUIET,
    WARNING,
    counted,
    grid,
    group_text,
    moment_text,
    number,
    progress_on,
    span,
)
from dynamodb_counters.cli.session import ABOVE_0, DONE, FOUND, UNKNOWN, Session, Within, options, shared, with_dry_run
from dynamodb_counters.errors import BackfillError

Kind = TypeVar("Kind", bound=Runner)

_COUNTED: Final = {
    "stale": "s",
    "waiting": "s",
    "deleting": "items",
    "scanning": "items",
    "draining": "shards",
    "withholding": "entries",
    "adding": "groups",
    "comparing": "groups",
    SETTLING: "s",
}
"""The unit of progress in each phase."""

with_pace: Final = options(
    click.option("--segments", type=click.IntRange(1, 100), default=4, help="Scanned at once."),
    click.option("--units-per-second", type=ABOVE_0, help="Most units. Default: all."),
)
with_manner: Final = options(
    with_pace,
    click.option("--run", metavar="ID", default="", show_default=False, help="Go on with an interrupted run."),
)
"""The options of a run: how it works, as `runner_of` takes it."""

_NOTHING: Final = "Nothing to backfill: all count all there is."
_MOST_ROWS: Final = 100
_WITH_YES: Final = click.option("--yes", is_flag=True, help="Do not ask.")
_verifying: Final = options(
    click.argument("names", nargs=-1, metavar="[NAME]…"),
    with_manner,
    click.option("--sample", type=Within(0, 1, min_open=True), default=1.0, help="Share of the groups to compare."),
)


def runner_of(session: Session, kind: type[Kind], **how: Any) -> Kind:
    return kind.of_table(session.table, session.client("dynamodbstreams"), now=session.service_time, **how)


@dataclass(slots=True)
class Worked:
    run: str = ""
    seconds: float = 0.0
    units: float = 0.0
    items: int = 0
    """Scanned by this process."""
    was_complete: bool = True
    """Whether there was nothing left to do."""

    def document(self) -> dict[str, Any]:
        return {"run": self.run, "seconds": round(self.seconds), "units": self.units, "items": self.items}


def work_off(session: Session, runner: Runner | Dropping, again: str = "") -> Worked:
    """Work it off and show how far it is; if a run breaks off, say that the command `again` goes on with it."""
    worked, began = Worked(), session.clock()
    try:
        with progress_on(session.err, session.clock) as show:
            for step in runner.steps():
                worked.run, worked.units = step.run, step.units
                worked.was_complete &= step.phase == COMPLETE
                if step.phase == "scanning":
                    worked.items = step.done
                if step.phase != COMPLETE:
                    unit = _COUNTED.get(step.phase, "")
                    show(step.phase, step.done, step.total, unit=unit, consumed=step.units)
    except BaseException as error:
        # After a BackfillError it is void, or never began.
        if worked.run and not isinstance(error, BackfillError):
            session.tell(f"run {worked.run} is not complete; go on with it: counters {again} --run {worked.run}")
        raise
    worked.seconds = session.clock() - began
    return worked


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]…")
@with_manner
@with_dry_run
@shared
def backfill(session: Session, names: tuple[str, ...], *, run: str, dry_run: bool, yes: bool, **manner: Any) -> int:
    """Count what the table holds already, while the stream goes on.

    By default all names that wait for it. Aggregates over them come along. A name that is complete, and is backfilled
    again, is empty meanwhile.
    """
    if run:
        if names or dry_run:
            raise click.UsageError("--run goes on with what the run began with: no names, no --dry-run")
        return _work(session, (), run=run, **manner)
    planned, found = runner_of(session, Backfill, names=names, **manner).estimate()
    listed, size = ", ".join(planned), f"{number(found.items)} items, {decimal(found.bytes)}"
    about = f"about {number(math.ceil(found.units))} units, by a sample of {counted(found.sampled, 'item')}"
    if dry_run or not listed:
        would = f"would backfill {listed}: {size}; {about}" if listed else _NOTHING
        session.emit({"names": planned, **found.document()}, would)
        return DONE
    if not session.confirm(f"Backfill {listed}: {size}; {about}?", yes=yes):
        return FOUND
    return _work(session, names, run=run, **manner)


def _work(session: Session, names: Collection[str], **manner: Any) -> int:
    work = runner_of(session, Backfill, names=names, **manner)
    worked = work_off(session, work, "backfill")
    entries = read_registry(session.table).names
    filled = sorted(name for name, entry in entries.items() if entry.run == worked.run)
    kept = {one.name: _kept(one) for one in session.declarations if one.name in filled}
    whole = {name: session.clock() - min(each).total_seconds() for name, each in kept.items() if each}
    document = {**worked.document(), "names": filled, "whole_since": whole}
    document |= {"settled": work.settled, "withheld": work.withheld}
    session.emit(document, _told(worked, filled, whole, work))
    return DONE


def _told(worked: Worked, filled: list[str], whole: dict[str, float], work: Backfill) -> list[str]:
    if worked.was_complete:
        return [f"run {worked.run} was complete: {', '.join(filled) or 'its names have been filled anew since'}"]
    one, many = "entry of the quarantine", "entries of the quarantine"
    entries = [f"{counted(work.settled, one, many)} settled"] if work.settled else []
    if work.withheld > 0:
        lacking = counted(work.withheld, f"{one} waits: it", f"{many} wait: they")
        entries.append(f"{lacking} could not be counted")
    lines = [f"{', '.join(filled)}: counted all there is, in {span(worked.seconds)}"]
    lines[0] += f"; {number(worked.items)} items scanned, {number(round(worked.units))} units"
    lines += [f"{name}: whole back to {moment_text(at)}; earlier events may have expired" for name, at in whole.items()]
    return [*lines, *entries, "Readers know of it within a minute."]


def _kept(declaration: Declaration) -> list[timedelta]:
    """The retentions of what a declaration counts, and its groups' own."""
    below = list(with_below(declaration))
    events = [each.source for each in below if isinstance(each.source, Event) and each.on_expiry == "keep"]
    retentions = [each.retention for each in (*events, *below) if isinstance(each, Event | Aggregate)]
    return [retention for retention in retentions if retention is not None]


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@with_pace
@_WITH_YES
@shared
def drop(session: Session, names: tuple[str, ...], *, yes: bool, **manner: Any) -> int:
    """Count names no more, and delete all their items.

    It takes about half an hour, until no process can write any of them; run it again if it breaks off.
    """
    dropping, listed = Dropping.of_table(session.table, session.service_time, names=names, **manner), ", ".join(names)
    if not session.confirm(f"Drop {listed}, and scan {number(dropping.items)} items for theirs?", yes=yes):
        return FOUND
    worked = work_off(session, dropping)
    found = dict(sorted(dropping.deleted.items()))
    document = {"dropped": found, "scanned": dropping.scanned, "units": worked.units}
    session.emit(document, f"{listed}: dropped; {counted(sum(found.values()), 'item')} deleted")
    return DONE


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
@_WITH_YES
@click.option("--unknown", is_flag=True, help="Repair also groups that may count what has expired: they lose that.")
@shared
def repair(session: Session, **options: Any) -> int:
    """Verify, show the differences, and add to each group what it lacks, once, during live updates.

    If groups differ, it compares again after 39 minutes: what Lambda gave up on may still be counted until then.

    Exit code 1: counts have drifted, and not all of them were repaired. Exit code 4: all were, and groups are left
    that are unknown from the source items.
    """
    return _compare(session, "repair", repairs=True, **options)


def _compare(
    session: Session, said: str, *, repairs: bool, yes: bool = False, unknown: bool = False, **manner: Any
) -> int:
    """Verify, show the differences, repair if asked to; the exit code."""
    if repairs and not yes and not session.has_person():
        # Before the work, not after it.
        session.confirm("", yes=False)
    if manner["run"] and manner["names"]:
        raise click.UsageError("--run goes on with what the run began with: no names")
    if repairs:
        # A person is asked whether to set what is unknown, too.
        manner |= {"outlives": GIVEN_UP_SETTLED, "unknown": unknown or not yes}
    verification = runner_of(session, Verification, **manner)
    sample = manner["sample"]
    worked = work_off(session, verification, said if sample == 1 else f"{said} --sample {sample:g}")
    if worked.was_complete:
        raise BackfillError(f"run {worked.run} is complete, and has reported what it found: begin another one")
    drifted, expired = verification.groups("drifted"), verification.groups("unknown", EXPIRED)
    document = _document(worked, verification)
    if not repairs or not (drifted or expired):
        session.emit(document, _shown(worked, verification))
        return FOUND if drifted else UNKNOWN if verification.differences else DONE
    if not session.as_json or not yes:
        session.err.print(_shown(worked, verification))
    if drifted and not session.confirm(f"Add what is missing to {counted(drifted, 'group')}?", yes=yes):
        session.emit(document, "nothing repaired")
        return FOUND
    question = f"{counted(expired, 'group')} may count what has expired. Set each to what its sources show, too?"
    unknown = bool(expired) and (unknown or (not yes and session.confirm(question, yes=False)))
    repaired, refused = verification.repair(unknown=unknown)
    told = f"{counted(repaired, 'group')} repaired"
    told += f"; {counted(refused, 'group')} left: repaired by another run meanwhile, verify again" if refused else ""
    session.emit(document | {"repaired": repaired, "refused": refused}, told)
    left = verification.groups("unknown") - (expired if unknown else 0) + verification.groups("waits")
    return FOUND if refused else UNKNOWN if left else DONE


def _shown(worked: Worked, verification: Verification) -> RenderableType:
    found = verification.differences
    drifted, unknown = verification.groups("drifted"), verification.groups("unknown")
    waiting = verification.groups("waits")
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
        verdict = Text(told, BAD if difference.verdict == "drifted" else WARNING)
        shown.add_row(difference.name, group, attribute, signed, verdict)
    rest = [Text(f"{number(len(rows) - _MOST_ROWS)} more; --json has all", QUIET)] if len(rows) > _MOST_ROWS else []
    return Group(shown, *rest, total)


def _document(worked: Worked, verification: Verification) -> dict[str, Any]:
    differences = [
        {
            "declaration": difference.name,
            "values": dict(difference.group),
            "missing": dict(difference.missing),
            "verdict": difference.verdict,
            "reason": difference.reason or None,
        }
        for difference in verification.differences
    ]
    compared = {"compared": verification.compared, "differences": differences}
    return {**worked.document(), **compared, "repaired": None, "refused": None}
