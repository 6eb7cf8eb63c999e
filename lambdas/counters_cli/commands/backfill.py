"""``counters backfill``, ``drop`` and ``verify``: commands that read the whole table, in runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, get_args

import click

from counters_cli.backfill import Backfill, Dropping
from counters_cli.output import counted, number, progress_on, span, table
from counters_cli.session import DONE, FOUND, UNKNOWN, Session, options, shared, with_dry_run, with_yes
from counters_lambda.counting.runner import COMPLETE, Progress, Runner
from counters_lambda.counting.verification import SETTLING, Verdict, Verification
from dynamodb_counters._assumptions import GIVEN_UP_SETTLED
from dynamodb_counters._registry import read_registry
from dynamodb_counters.errors import BackfillError

Kind = TypeVar("Kind", bound=Runner)

_UNITS: Final = {"stale": "s", "waiting": "s", SETTLING: "s", "scanning": "items", "draining": "shards"}
"""The unit of progress in each phase."""

_with_pace: Final = options(
    click.option("--segments", type=click.IntRange(1, 100), default=4, help="Scanned at once."),
    click.option("--units-per-second", type=click.IntRange(1), help="Most units. Default: all."),
)
_with_run: Final = options(
    click.argument("names", nargs=-1, metavar="[NAME]…"),
    _with_pace,
    click.option("--run", metavar="ID", default="", show_default=False, help="Go on with an interrupted run."),
)
_NOTHING: Final = "Nothing to backfill: all count all there is."
_GO_ON: Final = "--run goes on with what the run began with: no names, no --dry-run"


def runner_of(session: Session, kind: type[Kind], **how: Any) -> Kind:
    return kind.of_table(session.table, session.client("dynamodbstreams"), now=session.service_time, **how)


def work_off(session: Session, runner: Runner | Dropping) -> dict[str, Any]:
    """Work it off and show how far it is; if a run breaks off, say how to go on with it."""
    began, step, items, has_begun = session.clock(), Progress("", ""), 0, False
    try:
        with progress_on(session.err, session.clock) as show:
            for step in runner.steps():
                if step.phase == COMPLETE:
                    continue
                has_begun = True
                items = step.done if step.phase == "scanning" else items
                show(step.phase, step.done, step.total, unit=_UNITS.get(step.phase, ""), consumed=step.units)
    except BaseException as error:
        # After a BackfillError it is void, or never began.
        if step.run and not isinstance(error, BackfillError):
            session.tell(f"run {step.run} is not complete: the same command goes on, with --run {step.run} for names")
        raise
    if step.run and not has_begun:
        raise BackfillError(f"run {step.run} is complete, and has said what it did: begin another one")
    return {"run": step.run, "seconds": round(session.clock() - began), "units": step.units, "items": items}


@click.command()
@_with_run
@with_dry_run
@shared
def backfill(session: Session, names: tuple[str, ...], *, run: str, dry_run: bool, yes: bool, **manner: Any) -> int:
    """Count what the table holds already, while the stream goes on.

    By default all names that wait for it. Aggregates over them come along. A name that is complete, and is backfilled
    again, is empty meanwhile.
    """
    if run and (names or dry_run):
        raise click.UsageError(_GO_ON)
    if not run:
        planned, items, size = runner_of(session, Backfill, names=names, **manner).preview()
        about = f"{', '.join(planned)}: {number(items)} items, {number(size)} bytes"
        if dry_run or not planned:
            document = {"names": planned, "items": items, "bytes": size}
            session.emit(document, f"would backfill {about}" if planned else _NOTHING)
            return DONE
        if not session.confirm(f"Backfill {about}?", yes=yes):
            return FOUND
    runner = runner_of(session, Backfill, names=names, run=run, **manner)
    work = work_off(session, runner)
    filled = sorted(name for name, entry in read_registry(session.table).names.items() if entry.run == work["run"])
    line = f"{', '.join(filled)}: counted all there is, in {span(work['seconds'])}; {_cost(work)}"
    line += f"; {counted(runner.withheld, 'entry waits', 'entries wait')} in quarantine" if runner.withheld else ""
    document = {**work, "names": filled, "withheld": runner.withheld}
    session.emit(document, [line, "Readers know of it within a minute. What had expired is not counted."])
    return DONE


def _cost(work: Mapping[str, Any]) -> str:
    return f"{number(work['items'])} items scanned, {number(round(work['units']))} units"


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@_with_pace
@with_yes
@shared
def drop(session: Session, names: tuple[str, ...], *, yes: bool, **manner: Any) -> int:
    """Count names no more, and delete all their items.

    It takes about half an hour, until no process can write any of them; run it again if it breaks off.
    """
    dropping, listed = Dropping.of_table(session.table, session.service_time, names=names, **manner), ", ".join(names)
    if not session.confirm(f"Drop {listed}, and scan {number(dropping.items)} items for theirs?", yes=yes):
        return FOUND
    units = work_off(session, dropping)["units"]
    deleted = dict(sorted(dropping.deleted.items()))
    document = {"dropped": deleted, "scanned": dropping.scanned, "units": units}
    session.emit(document, f"{listed}: dropped; {counted(sum(deleted.values()), 'item')} deleted")
    return DONE


@click.command()
@_with_run
@click.option("--sample", default=1.0, help="Share of the groups to compare.")
@click.option("--repair", is_flag=True, help="Show the differences, and add to each group what it lacks, once.")
@with_yes
@shared
def verify(
    session: Session, names: tuple[str, ...], *, run: str, sample: float, repair: bool, yes: bool, **manner: Any
) -> int:
    """Recompute counts from their source items while traffic flows, and show where they differ.

    By default all declarations that count everything there is. Exit code 1: counts have drifted, and were not
    repaired. Exit code 4: none has for certain, but some are unknown from the source items.

    With --repair, if groups differ, it compares again after 39 minutes: what Lambda gave up on may still be counted
    until then.
    """
    if run and names:
        raise click.UsageError(_GO_ON)
    if not 0 < sample <= 1:
        raise click.UsageError(f"invalid --sample {sample:g}: expected a share above 0, at most 1")
    if repair and not yes and not session.has_person():
        # Before the work, not after it.
        session.confirm("", yes=False)
    if repair:
        manner |= {"outlives": GIVEN_UP_SETTLED}
    verification = runner_of(session, Verification, names=names, run=run, sample=sample, **manner)
    work = work_off(session, verification)
    drifted, unknown, waiting = (verification.groups(verdict).total() for verdict in get_args(Verdict))
    differences = [
        {
            "declaration": each.name,
            "values": dict(each.group),
            "missing": dict(each.missing),
            "verdict": each.verdict,
            "reason": each.reason or None,
        }
        for each in verification.differences
    ]
    document = work | {"compared": verification.compared, "differences": differences}
    total = f"{counted(verification.compared, 'group')} compared: {drifted or 'none'} drifted, {unknown} cannot be"
    total += f" verified, {waiting} wait for the quarantine; {span(work['seconds'])}, {_cost(work)}"
    lines = [*table(differences), total]
    if not repair or not drifted:
        session.emit(document, lines)
        return FOUND if drifted else UNKNOWN if verification.differences else DONE
    for line in lines if not session.as_json or not yes else ():
        session.tell(line)
    if not session.confirm(f"Add what is missing to {counted(drifted, 'group')}?", yes=yes):
        session.emit(document, "nothing repaired")
        return FOUND
    repaired, left = verification.repair()
    why = "repaired or filled anew meanwhile, or unable to take it: verify again"
    others = f"; {counted(left, 'item')} left, {why}" if left else ""
    document |= {"repaired": repaired, "left": left}
    session.emit(document, f"{counted(repaired, 'item')} repaired{others}")
    return FOUND if left else UNKNOWN if unknown + waiting else DONE
