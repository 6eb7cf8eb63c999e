"""``counters diff``: what a deployment would change, before it is deployed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Group
from rich.text import Text

from dynamodb_counters._control.registry import Registry, read_registry, threshold_name
from dynamodb_counters._declarations import Aggregate, Declaration, Direct, Window
from dynamodb_counters._declarations.codec import decode, definition, described, same_definition
from dynamodb_counters._declarations.thresholds import Threshold
from dynamodb_counters._dev.deployed import AGGREGATOR_HANDLER
from dynamodb_counters.cli.output import BAD, GOOD, HEADING, QUIET, json_lines
from dynamodb_counters.cli.session import DONE, FOUND, Session, shared
from dynamodb_counters.errors import ChangedError

_TITLES: Final = {
    "new": "new",
    "changed": "changed: a name keeps its definition, by which it counts on",
    "undeclared": "no longer declared, and counted on",
}


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
    registry = read_registry(session.table)
    if session.declared is not None:
        declared = session.declarations
    else:
        declared = decode(from_templates(Path(template or "cdk.out"), aggregator))
    names = [entry for entry in _entries(registry, declared) if entry["kind"] != "unchanged"]
    document: dict[str, Any] = {"first_deployment": not registry.is_founded, "names": names}
    told: list[Any] = (
        [] if registry.is_founded else ["Nothing counts this table yet: this is its first deployment.", ""]
    )
    told += [line for entry in names for line in _shown(entry)] or ["Nothing changes."]
    session.emit(document, Group(*told))
    return FOUND if names else DONE


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


def _entries(registry: Registry, declared: Sequence[Declaration]) -> Iterator[dict[str, Any]]:
    """What becomes of each name, and of each threshold."""
    counted: dict[str, Any] = {each.name: each for each in registry.declarations}
    own: dict[str, Any] = {each.name: definition(each) for each in declared}
    for name in sorted({*counted, *own} - registry.entries.keys() | counted.keys()):
        yield _entry(name, counted.get(name), own.get(name), is_first=not registry.is_founded)
    watching = {entry.name: entry.threshold for some in registry.thresholds.values() for entry in some}
    armed = {
        threshold_name(one.name): one for each in declared if isinstance(each, Aggregate) for one in each._thresholds
    }
    for name in sorted({*watching, *armed}):
        yield _entry(name, watching.get(name), armed.get(name), is_first=True)


def _entry(name: str, old: Any, new: Any, *, is_first: bool) -> dict[str, Any]:
    kind, follows = "unchanged", ""
    if new is None:
        kind, follows = "undeclared", f"counters drop {name.rpartition(' ')[2]}"
    elif old is None:
        is_whole = is_first or isinstance(getattr(new, "source", None), Direct)
        kind, follows = "new", "" if is_whole else f"counters backfill {name}"
    elif not (old == new or (isinstance(old, Aggregate | Window) and same_definition(old, new))):
        is_watch = isinstance(old, Threshold)
        cure = ChangedError(name).cure
        kind, follows = "changed", "give the new one another name, and drop the old one" if is_watch else cure
    before, after = (None if each is None else described([each])[each.name] for each in (old, new))
    return {"name": name, "kind": kind, "next": follows, "before": before, "after": after}


def _shown(entry: Mapping[str, Any]) -> Iterator[Text]:
    """Name and title, what to do next, and how the JSON of the definition changes."""
    yield Text.assemble((entry["name"], HEADING), f": {_TITLES[entry['kind']]}")
    if entry["next"]:
        yield Text(f"  next: {entry['next']}")
    before, after = (json_lines(entry[side]) for side in ("before", "after"))
    for line in unified_diff(before, after, "table", "deployment", lineterm=""):
        yield Text(line, {"+": GOOD, "-": BAD, "@": QUIET}.get(line[0], ""))
