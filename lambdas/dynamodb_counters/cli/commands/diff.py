"""``counters diff``: what a deployment would change, before it is deployed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click
from rich.console import Group
from rich.text import Text

from dynamodb_counters._changes.advice import Advice, advice, event_advice
from dynamodb_counters._changes.effective import Merged, Past, merged
from dynamodb_counters._control.control import Control, Status, past_of, read_control, stored_deployments
from dynamodb_counters._control.deployments import last_declarations
from dynamodb_counters._declarations import Declaration, Event
from dynamodb_counters._declarations.codec import decode, described, without_attributes
from dynamodb_counters._declarations.groups import base_name
from dynamodb_counters._dev.deployed import AGGREGATOR_HANDLER
from dynamodb_counters.cli.output import BAD, GOOD, HEADING, QUIET, json_lines
from dynamodb_counters.cli.session import DONE, FOUND, Session, UnknownDeclarationsError, shared


@click.command()
@click.option("--template", metavar="FILE|DIR", help="A synthesized template, or a folder of them. Default: cdk.out.")
@click.option("--aggregator", metavar="ID", help="Logical ID of the aggregator's function, if templates have several.")
@shared
def diff(session: Session, template: str | None, aggregator: str | None) -> int:
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
    names = [*_names(found, seen)]
    events = [_entry(name, said, old, new) for name, (old, new, said) in event_advice(declared, folded).items()]
    document: dict[str, Any] = {"first_deployment": first, "names": names, "events": events}
    told: list[Any] = ["Nothing counts this table yet: this would be its first deployment.", ""] if first else []
    told += [line for entry in (*names, *events) for line in _shown(entry)]
    session.emit(document, Group(*told))
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


def _names(found: Merged, seen: Control) -> Iterator[dict[str, Any]]:
    for name, change in found.changes.items():
        old, new = change.before, change.after
        entry = _entry(name, advice(found, name, first=seen.history is None), old, new)
        whole = seen.statuses.get(name, Status()).whole
        yield {**entry, "kind": change.kind, "whole": whole}


def _entry(name: str, said: Advice, old: Declaration | Event | None, new: Declaration | Event | None) -> dict[str, Any]:
    before, after = (described([one])[base_name(one.name)] if one is not None else None for one in (old, new))
    return {"name": name, **said._asdict(), "before": before, "after": after}


def _shown(entry: Mapping[str, Any]) -> Iterator[Text]:
    """Name and title, what to do next, and how the JSON of the definition changes."""
    yield Text.assemble((entry["name"], HEADING), f": {entry['title']}")
    if entry["next"]:
        yield Text(f"  next: {entry['next']}")
    before, after = (json_lines(entry[side]) for side in ("before", "after"))
    for line in unified_diff(before, after, "table", "deployment", lineterm=""):
        yield Text(line, {"+": GOOD, "-": BAD, "@": QUIET}.get(line[0], ""))
