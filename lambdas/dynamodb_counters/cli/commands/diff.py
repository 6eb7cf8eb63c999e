"""``counters diff``: what a deployment would change, before it is deployed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from dynamodb_counters._backfill.verdicts import tally_of
from dynamodb_counters._changes.change_words import Advice, EventChange, advice, differences, event_differences
from dynamodb_counters._changes.effective import Merged, merged
from dynamodb_counters._changes.meaning import Past
from dynamodb_counters._control.control import Control, past_of, read_control, stored_deployments
from dynamodb_counters._control.deployments import last_declarations
from dynamodb_counters._control.statuses import Status
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import decode, without_attributes
from dynamodb_counters._declarations.generations import base_name, generation, left_behind
from dynamodb_counters._dev.deployed import AGGREGATOR_HANDLER
from dynamodb_counters._fold.item_layout import ItemLayout, group_items, group_of_item
from dynamodb_counters._items.table_schema import TYPE
from dynamodb_counters._table import Table
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.session import Session, UnknownDeclarationsError, shared
from dynamodb_counters.cli.show.formats import HEADING, group_text, pairs


@click.command()
@click.option("--template", metavar="FILE|DIR", help="A synthesized template, or a folder of them. Default: cdk.out.")
@click.option("--aggregator", metavar="ID", help="Logical ID of the aggregator's function, if templates have several.")
@click.option("--tallies", is_flag=True, help="List groups whose tally is left behind; reads the whole table.")
@shared
def diff(session: Session, template: str | None, aggregator: str | None, *, tallies: bool) -> int:
    """Compare what a deployment declares with what the table counts.

    Run it after `cdk synth`. Exit code 1: there are differences.
    """
    if session.declared is not None and template is not None:
        raise click.UsageError("--template and --declarations: pass one of them")
    seen = read_control(session.table)
    first = seen.history is None
    folded = () if first else last_declarations(session.table, UnknownDeclarationsError, folded=True)
    past = Past() if first else past_of(stored_deployments(session.table).values(), seen)
    if session.declared is not None:
        declared = session.declarations
    else:
        declared = decode(from_templates(Path(template or "cdk.out"), aggregator))
    declared = without_attributes(declared)
    found = merged(declared, folded, seen.reads, past)
    events = event_differences(declared, folded)
    left = [*_left_tallies(session.table, found, seen.reads)] if tallies else []
    document = _document(found, events, seen) | ({"left_behind": left} if tallies else {})
    session.emit(document, Group(_shown(found, events, first=first), *map(_left, left)))
    return FOUND if events or any(change.kind != "unchanged" for change in found.changes.values()) else DONE


def from_templates(path: Path, wanted: str | None) -> str:
    """Declarations of the aggregator that is wanted, or is the only one."""
    found: dict[str, str] = {}
    if not path.exists():
        raise click.UsageError(f"there is no {str(path)!r} here: run `cdk synth`, or name a template with --template")
    for file in sorted(path.rglob("*.template.json")) if path.is_dir() else [path]:
        try:
            found |= _aggregators(json.loads(file.read_text(encoding="utf-8")))
        except (AttributeError, LookupError, TypeError, ValueError, OSError):
            raise click.UsageError(f"{str(file)!r} is no template: expected a file that `cdk synth` wrote") from None
    if not found:
        raise click.UsageError(f"no aggregator in {str(path)!r}: run `cdk synth`, or name its folder with --template")
    if wanted in found:
        return found[wanted]
    if wanted is not None or len(found) > 1:
        raise click.UsageError(f"which aggregator? name one with --aggregator: {', '.join(sorted(found))}")
    return next(iter(found.values()))


def _aggregators(template: Any) -> dict[str, str]:
    found = {}
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        if properties.get("Handler") == AGGREGATOR_HANDLER:
            found[name] = str(properties["Environment"]["Variables"]["DECLARATIONS"])
    return found


def _document(found: Merged, events: Mapping[str, EventChange], seen: Control) -> dict[str, Any]:
    first = seen.history is None
    return {
        "first_deployment": first,
        "names": [
            {
                "name": name,
                "kind": change.kind,
                "changes": _changes(differences(change)),
                **asdict(advice(found, name, first=first)),
                "whole": seen.statuses.get(name, Status()).whole,
            }
            for name, change in found.changes.items()
        ],
        "events": [
            {"name": name, "changes": _changes(change.aspects), **asdict(change.advice)}
            for name, change in events.items()
        ],
    }


def _changes(found: list[tuple[str, str, str]]) -> list[dict[str, str]]:
    return [{"aspect": aspect, "before": before, "after": after} for aspect, before, after in found]


def _shown(found: Merged, events: Mapping[str, EventChange], *, first: bool) -> Group:
    parts: list[Any] = []
    quiet = []
    if first:
        parts += ["Nothing counts this table yet: this would be its first deployment.", ""]
    for name, change in found.changes.items():
        if (said := advice(found, name, first=first)).title == "unchanged":
            quiet.append(name)
        else:
            parts.append(_entry(name, differences(change), said))
    for name, event in events.items():
        parts.append(_entry(f"event {name}", event.aspects, event.advice))
    parts.append(Text(f"unchanged: {', '.join(quiet)}" if quiet else "", overflow="fold"))
    return Group(*parts)


def _left_tallies(table: Table, found: Merged, reads: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Scan for groups with a tally that has no place in the next generation."""
    by_type: dict[str, Declaration] = {}
    for name, change in found.changes.items():
        before, after = change.before, change.after
        if change.kind == "waits" and before is not None and after is not None and left_behind(after, before):
            before = generation(before, reads.get(name, 0))
            by_type[before.name] = before
    for item in table.of_types(*by_type, ConsistentRead=False) if by_type else ():
        declaration = by_type[item[TYPE]["S"]]
        for one in group_items(declaration, item):
            tally = tally_of(one)
            group = group_of_item(declaration, one) if tally else None
            if group is not None:
                values = ItemLayout(declaration).values(group)
                yield {"name": base_name(declaration.name), "values": values, "tally": tally}


def _left(found: Mapping[str, Any]) -> Text:
    tally = ", ".join(f"{name} {number}" for name, number in found["tally"].items())
    return Text(f"left behind: the tally of {found['name']} {group_text(found['values'])}: {tally}")


def _entry(name: str, changes: list[tuple[str, str, str]], said: Advice) -> Group:
    shown = pairs({aspect: f"{before} → {after}" for aspect, before, after in changes})
    for label, text in (("then", said.does), ("counts", said.counts), ("next", said.next)):
        if text:
            shown.add_row(label, text)
    return Group(Text.assemble((name, HEADING), f": {said.title}"), Padding(shown, (0, 0, 1, 2), expand=False))
