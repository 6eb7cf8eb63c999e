"""Problems that show at synth, when everything has been declared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Final, cast

from aws_cdk import Annotations, CfnResource
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cdk_dynamodb_counters._registry import Registration
from cdk_dynamodb_counters._synth import check_at_synth, resolved_property
from cdk_dynamodb_counters._table_schemas import table_schema
from dynamodb_counters._assumptions import MOST_NAMES
from dynamodb_counters._declarations import Aggregate, Event, Items, flatten, require_consistent
from dynamodb_counters._declarations.composites import read_by
from dynamodb_counters._declarations.sources import OURS
from dynamodb_counters._items.derived_fields import tier_of
from dynamodb_counters._items.table_schema import RANKING_INDEX
from dynamodb_counters.errors import InvalidArgumentError

MAX_BATCH_SIZE: Final = 1000
"""Records of a batch by default; large chunks of packed events make it less, but never ten."""

_PAYLOAD_BYTES: Final = 6_000_000
"""Payload of an invocation. https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""

_ENVIRONMENT_BYTES: Final = 4096
"""Most that all variables of a function take together.
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""

_UNKNOWN: Final = "x" * 255
"""Stands for a value known only at deployment: as long as the longest table name."""


def incomplete_declarations(registration: Registration) -> str | None:
    """Find an aggregator without declarations, or with one whose source is not declared."""
    try:
        require_consistent(registration.declarations, registration.events)
    except InvalidArgumentError as error:
        return str(error)
    if (names := len(registration.declarations) + len(registration.thresholds)) > MOST_NAMES:
        return f"invalid number of names, {names}: expected at most {MOST_NAMES} aggregates, windows and thresholds"
    if registration.declarations:
        return None
    return "nothing is counted: pass aggregates=, call add_aggregate() or add a WindowedCounter for the table"


def missing_aggregator(registration: Registration, path: str, problem: str) -> str | None:
    """Find a table whose declarations nothing counts, which is the ``problem``."""
    if registration.aggregator is not None:
        return None
    problem += f": the table at {path!r} has no aggregator"
    return f"{problem}; create a StreamAggregator for that table anywhere in the app"


def unarmed_thresholds(registration: Registration) -> str | None:
    """Find a threshold of an aggregate that is not declared."""
    try:
        flatten((*registration.declarations, *registration.thresholds))
    except InvalidArgumentError as error:
        return str(error)
    return None


def warn_if_uncounted(
    scope: Construct, table: dynamodb.ITable, find_uncounted: Callable[[], Iterable[str]], use: str
) -> None:
    """Warn at synth of the names that are then found: what ``use`` says is done with them, and nothing counts them."""
    if table.table_stream_arn is None:
        return  # Another app counts it.

    def warn() -> None:
        if names := ", ".join(map(repr, find_uncounted())):
            Annotations.of(scope).add_warning_v2(
                "dynamodb-counters:nothingCounts",
                f"Nothing in this app counts {names}, which {use}: declare it to the table's StreamAggregator or by a "
                "WindowedCounter, or acknowledge this if another app counts it, or your code by increment or "
                "record_once.",
            )

    check_at_synth(scope, warn)


def warn_if_pages_gain_nothing(scope: Construct, registration: Registration, batch_size: float | None) -> None:
    """Warn at synth of aggregates of which a batch touches no more groups than pages, however many groups there are."""

    def warn() -> None:
        declared = (each for each in registration.declarations if isinstance(each, Aggregate))
        if names := ", ".join(repr(each.name) for each in declared if _has_one_group_per_page(each, batch_size)):
            Annotations.of(scope).add_warning_v2(
                "dynamodb-counters:pagesGainNothing",
                f"Pages of {names} gain nothing: a batch has one group of each, as batch_size is 1, or as groups that "
                "share pages differ in their time alone. Leave out pages=True, or acknowledge this if old events come.",
            )

    check_at_synth(scope, warn)


def warn_if_corrections_may_count_twice(scope: Construct, registration: Registration) -> None:
    """Warn at synth of versioned events with several attributes in their key, of which a correction may change one."""

    def warn() -> None:
        sources = (*registration.events, *(declared.source for declared in registration.declarations))
        versioned = {each.name: each.fields for each in sources if isinstance(each, Event) and each.version is not None}
        if names := ", ".join(repr(name) for name, fields in sorted(versioned.items()) if len(fields) > 1):
            Annotations.of(scope).add_warning_v2(
                "dynamodb-counters:keyOfVersions",
                f"A correction of {names} that changes an attribute of the key is another event, and counts again: "
                "leave only attributes in the key that no correction changes, or acknowledge this if none does.",
            )

    check_at_synth(scope, warn)


def _has_one_group_per_page(aggregate: Aggregate, batch_size: float | None) -> bool:
    source = aggregate.source
    if not aggregate.pages or isinstance(source, Aggregate) or aggregate._shelved or read_by(aggregate) != "get":
        return False
    is_packed = isinstance(source, Event) and source.packed is not None
    is_one = batch_size == 1 and not is_packed and not any("[]" in field for field in aggregate.fields)
    return is_one or all(map(tier_of, aggregate._sk_template.fields))


def second_mapping(function: lambda_.Function) -> str | None:
    """Find a mapping that other code has added to an aggregator's function."""
    added = [child.node.id for child in function.node.children if isinstance(child, lambda_.EventSourceMapping)]
    if not added:
        return None
    return (
        f"the function has another event source mapping, {added[0]!r}, and records that one delivers before the other "
        "are lost: remove it, the construct has a mapping for each stream"
    )


def note_key_of_import(source: dynamodb.ITable) -> None:
    """Say what an imported source table needs, which synth cannot see."""
    if table_schema(source) is None and source.encryption_key is None:
        Annotations.of(source).add_info(
            "If a key of yours encrypts the imported source table, import it with encryption_key=. A table of another "
            "account whose key AWS manages cannot be read. Synth cannot check either."
        )


def default_batch_size(registration: Registration) -> int:
    """Return how many records an invocation takes at most by default."""
    return min(MAX_BATCH_SIZE, _fitting_chunks(registration) or MAX_BATCH_SIZE)


def oversized_batch(registration: Registration, batch_size: float) -> str | None:
    """Find a batch that may hold more chunks of packed events than an invocation can carry."""
    fitting = _fitting_chunks(registration)
    if fitting is None or batch_size <= fitting:
        return None
    allowed = f"at most {fitting:,}: an invocation's 6 MB hold no more chunks of packed events; lower their chunk_bytes"
    return str(InvalidArgumentError("batch_size", batch_size, allowed))


def _fitting_chunks(registration: Registration) -> int | None:
    """Return how many of the largest chunks fit into an invocation, or None if no event is packed."""
    sizes = [
        declared.source.packed.chunk_bytes
        for declared in registration.declarations
        if isinstance(declared.source, Event) and declared.source.packed is not None
    ]
    # A stream record holds binary as base64: four characters for three bytes.
    return _PAYLOAD_BYTES * 3 // (max(sizes) * 4) if sizes else None


def missing_ranking_index(registration: Registration) -> str | None:
    """Find a ranked aggregate on a table of the same app that lacks the ranking index."""
    schema = table_schema(registration.table)
    ranked = [
        declared.name
        for declared in registration.declarations
        if isinstance(declared, Aggregate) and declared.ranking is not None
    ]
    if not ranked or schema is None or RANKING_INDEX in schema.indexes:
        return None
    problem = f"the table has no {RANKING_INDEX!r} index, which {', '.join(map(repr, ranked))} needs"
    return f"{problem}: create the table with ranking_index=True"


def misnamed_keys(registration: Registration, source_table: dynamodb.ITable | None) -> str | None:
    """Find items whose keys are named otherwise than those of their table; or a source table without items."""
    sources = [declared.source for declared in registration.declarations]
    found = {source.name: source for source in sources if isinstance(source, Items)}
    if source_table is None:
        expected, where = OURS, "source_table= of the StreamAggregator, which names the table they lie in"
    elif not found:
        return "nothing of source_table is counted: declare an aggregate or window whose source is Items"
    elif (schema := table_schema(source_table)) is not None:
        expected, where = schema.names, f"those of the source table {source_table.node.path!r}: keys={schema.names!r}"
    else:
        return None
    for name, items in found.items():
        if items._table_keys != expected:
            return f"{InvalidArgumentError('keys', items._table_keys, where)} (items {name!r})"
    return None


def oversized_environment(function: lambda_.Function) -> str | None:
    """Find an environment that exceeds Lambda's limit."""
    resource = cast(CfnResource, function.node.default_child)
    environment = resolved_property(resource, "environment")["variables"]
    known = {name: value if isinstance(value, str) else _UNKNOWN for name, value in environment.items()}
    # Lambda measures the variables as JSON, which escapes the quotes of a schema.
    size = len(json.dumps(known))
    if size <= _ENVIRONMENT_BYTES:
        return None
    most, name = max((len(json.dumps(value)), name) for name, value in known.items())
    problem = (
        f"the function's environment takes {size} bytes as JSON, {most} of them for {name}, "
        f"but Lambda allows {_ENVIRONMENT_BYTES}"
    )
    return f"{problem}: declare less, shorten names, keys or the schema, or move some declarations to another table"
