"""``counters diff``: what a deployment would change, before it is deployed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Group
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.change_words import Advice, advice, differences, event_advice, event_differences
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._declarations.effective import Merged, merged
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX, PK, SK
from dynamodb_counters._stream.deployment_items import AGGREGATOR, history_key, read_history
from dynamodb_counters._stream.deployments import last_declarations
from dynamodb_counters._table import Table
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.session import Session, UnknownDeclarationsError, shared

_HANDLER: Final = "dynamodb_counters.handlers.aggregator.handler"


@dataclass(frozen=True, slots=True)
class _Deployed:
    """What a table folds and what its readers use."""

    folded: tuple[Declaration, ...] = ()
    statuses: Mapping[str, Any] = field(default_factory=dict)
    aggregator: str = ""
    has_history: bool = False

    @property
    def reads(self) -> dict[str, int]:
        return {name: int(status.get("reads", 0)) for name, status in self.statuses.items()}


@click.command()
@click.option("--template", metavar="FILE|DIR", help="A synthesized template, or a folder of them. Default: cdk.out.")
@click.option("--aggregator", metavar="PATH", help="Construct path of the aggregator, if templates have several.")
@shared
def diff(session: Session, template: str | None, aggregator: str | None) -> int:
    """Compare what a deployment declares with what the table counts.

    Run it after `cdk synth`. Exit code 1: there are differences.
    """
    if session.declared is not None and template is not None:
        raise click.UsageError("--template and --declarations: pass one of them")
    deployed = _read(session.table)
    if session.declared is not None:
        declared = session.declarations
    else:
        declared = decode(_from_templates(Path(template or "cdk.out"), aggregator, deployed.aggregator))
    found = merged(declared, deployed.folded, deployed.reads)
    events = event_differences(declared, deployed.folded)
    session.emit(_document(found, events, deployed), _shown(found, events, deployed))
    return FOUND if events or any(change.kind != "unchanged" for change in found.changes.values()) else DONE


def _read(table: Table) -> _Deployed:
    def get(key: dict[str, Any]) -> dict[str, Any]:
        return dict(table.client.get_item(TableName=table.name, Key=key, ConsistentRead=True).get("Item", {}))

    item = get(history_key())
    if read_history(item) is None:
        return _Deployed()
    standing = get({PK: {"S": CHECKPOINT_PREFIX}, SK: {"S": "GENERATIONS"}})
    return _Deployed(
        last_declarations(table, UnknownDeclarationsError),
        json.loads(standing.get("status", {}).get("S", "{}")),
        item.get(AGGREGATOR, {}).get("S", ""),
        has_history=True,
    )


def _from_templates(path: Path, wanted: str | None, counting: str) -> str:
    """The declarations of the aggregator that is wanted, or counts the table, or is the only one."""
    found: dict[str, str] = {}
    for file in sorted(path.rglob("*.template.json")) if path.is_dir() else [path]:
        try:
            found |= _aggregators(json.loads(file.read_text(encoding="utf-8")))
        except (AttributeError, LookupError, TypeError, ValueError, OSError):
            raise click.UsageError(f"{str(file)!r} is no template: expected a file that `cdk synth` wrote") from None
    if not found:
        raise click.UsageError(f"no aggregator in {str(path)!r}: run `cdk synth`, or name its folder with --template")
    for name in (wanted, counting):
        if name in found:
            return found[name]
    if wanted is not None or len(found) > 1:
        raise click.UsageError(f"which aggregator? name one with --aggregator: {', '.join(sorted(found))}")
    return next(iter(found.values()))


def _aggregators(template: Any) -> dict[str, str]:
    """The encoded declarations by construct path."""
    found = {}
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        if properties.get("Handler") == _HANDLER:
            variables = properties["Environment"]["Variables"]
            found[str(variables.get("AGGREGATOR", ""))] = str(variables["DECLARATIONS"])
    return found


def _document(found: Merged, events: Mapping[str, list[tuple[str, str, str]]], deployed: _Deployed) -> dict[str, Any]:
    return {
        "first_deployment": not deployed.has_history,
        "names": [
            {
                "name": name,
                "kind": change.kind,
                "renamed_from": change.renamed_from or None,
                "changes": _changes(differences(change)),
                **_advised(advice(found, name, first=not deployed.has_history)),
                "whole": bool(deployed.statuses.get(name, {}).get("whole", True)),
            }
            for name, change in found.changes.items()
        ],
        "events": [
            {"name": name, "changes": _changes(changes), **_advised(event_advice(changes))}
            for name, changes in events.items()
        ],
    }


def _changes(found: list[tuple[str, str, str]]) -> list[dict[str, str]]:
    return [{"aspect": aspect, "before": before, "after": after} for aspect, before, after in found]


def _advised(said: Advice) -> dict[str, str]:
    return {"title": said.title, "does": said.does, "counts": said.counts, "next": said.next}


def _shown(found: Merged, events: Mapping[str, list[tuple[str, str, str]]], deployed: _Deployed) -> Group:
    parts: list[Any] = []
    quiet = []
    if not deployed.has_history:
        parts.append(Text("Nothing counts this table yet: this would be its first deployment.\n"))
    for name, change in found.changes.items():
        said = advice(found, name, first=not deployed.has_history)
        if said.title == "unchanged" and not change.renamed_from:
            quiet.append(name)
            continue
        renamed = f", renamed from {change.renamed_from}" if change.renamed_from else ""
        parts.append(_entry(name, renamed, differences(change), said))
    for name, changes in events.items():
        parts.append(_entry(f"event {name}", "", changes, event_advice(changes)))
    parts.append(Text(f"unchanged: {', '.join(quiet)}" if quiet else "", overflow="fold"))
    return Group(*parts)


def _entry(name: str, also: str, changes: list[tuple[str, str, str]], said: Advice) -> Group:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for aspect, before, after in changes:
        grid.add_row(aspect, f"{before} → {after}")
    for label, text in (("then", said.does), ("counts", said.counts), ("next", said.next)):
        if text:
            grid.add_row(Text(label, style="dim"), text)
    heading = Text.assemble((name, "bold"), f": {said.title}{also}")
    return Group(heading, Padding(grid, (0, 0, 1, 2), expand=False))
