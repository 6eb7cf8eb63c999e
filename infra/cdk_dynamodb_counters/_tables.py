"""What an app knows of a table: where it is, its keys and its stream, and what is declared about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from aws_cdk import Annotations, Stack, Token
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from cdk_dynamodb_counters._arguments import require_member
from cdk_dynamodb_counters._synth import check_at_synth, resolved_property
from dynamodb_counters._declarations import (
    Declarable,
    Declaration,
    Event,
    TableKeys,
    Threshold,
    flatten,
    require_consistent,
)
from dynamodb_counters.errors import InvalidArgumentError

IMAGES: Final = "NEW_AND_OLD_IMAGES"
"""The view type of a stream that can be counted."""

_IMPORT: Final = "import it by Table.from_table_attributes(…, table_stream_arn=…)"
_ANY_STREAM: Final = "/stream/*"
"""How the ARN ends that CDK gives a replica's stream. It is fit for a policy, and not for an event source mapping."""
_MOST_READERS: Final = 2
"""Readers of a stream. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html"""
_LIST: Final = "_counters_declarations"


def is_import(table: dynamodb.ITable) -> bool:
    """Return whether the app does not define the table."""
    return not isinstance(table.node.default_child, dynamodb.CfnGlobalTable | dynamodb.CfnTable)


def property_of(table: dynamodb.ITable, name: str) -> Any:
    """Return what the template says of a table that the app defines, by its camel-case name; None of an import."""
    resource = table.node.default_child
    if isinstance(resource, dynamodb.CfnGlobalTable | dynamodb.CfnTable):
        return resolved_property(resource, name)
    return None


def table_keys(table: dynamodb.ITable) -> tuple[TableKeys, bool]:
    """Return the names of a table's keys and of its attribute of TTL, and whether all keys are texts."""
    types = {entry["attributeName"]: entry["attributeType"] for entry in property_of(table, "attributeDefinitions")}
    keys = sorted(property_of(table, "keySchema"), key=lambda key: str(key["keyType"]) != "HASH")
    names = [key["attributeName"] for key in keys]
    ttl = property_of(table, "timeToLiveSpecification") or {}
    is_on = ttl.get("enabled", True)
    own = TableKeys(names[0], names[1] if names[1:] else None, ttl.get("attributeName") if is_on else None)
    return own, {types[name] for name in names} == {"S"}


def require_stream(argument: str, table: dynamodb.ITable) -> None:
    """Refuse anything but a table with a stream; one that the app defines must carry new and old images."""
    require_member(argument, table, "grant_stream_read", f"a TableV2 or Table; or {_IMPORT}")
    if is_import(table):
        if table.table_stream_arn is None:
            raise InvalidArgumentError(argument, table.node.path, f"a table with a stream; {_IMPORT}")
    elif (property_of(table, "streamSpecification") or {}).get("streamViewType") != IMAGES:
        keyword = "stream" if isinstance(table.node.default_child, dynamodb.CfnTable) else "dynamo_stream"
        allowed = f"a table with a stream of new and old images: {keyword}=StreamViewType.{IMAGES}"
        raise InvalidArgumentError(argument, table.node.path, allowed)


def require_same_place(argument: str, user: Construct, table: dynamodb.ITable, *, any_account: bool = False) -> None:
    """Refuse a table of another account or region than the construct's stack: there, its name means another table.

    With `any_account`, an import may be of another account: it is named by its ARN alone.
    """
    stack, imported, stream = Stack.of(user), is_import(table), str(table.table_stream_arn)
    account, region = table.env.account, table.env.region
    if imported and table.table_stream_arn is not None and not Token.is_unresolved(stream):
        own, arn, name = stream.partition("/stream/")[0], str(table.table_arn), table.table_name
        is_own = own.endswith(f":table/{name}") or Token.is_unresolved(name) if Token.is_unresolved(arn) else own == arn
        if not is_own:
            expected = "the stream of that table, of the same account and region"
            raise InvalidArgumentError(argument, f"{table.node.path} with the stream {stream}", expected)
        region, account = f"{own}:::::".split(":")[3:5]
    parts = ((stack.region, region), (stack.account, account))
    places = [[None if Token.is_unresolved(part) else part for part in pair] for pair in parts]
    # A part that an import leaves open is where its stack is deployed.
    differ = [here != there and not (imported and None in (here, there)) for here, there in places]
    if differ[0] or (differ[1] and not (any_account and imported)):
        here = [pair[0] or "that is known only at deployment" for pair in places]
        allowed = f"a table of account {here[1]} and region {here[0]}, where {user.node.path!r} is"
        raise InvalidArgumentError(argument, table.node.path, allowed)


def generated_name(table: dynamodb.ITable, chosen: object) -> str | None:
    """Find a name that CDK gives the table because something elsewhere refers to it; `chosen` is its user's."""
    name = property_of(table, "tableName")
    if name == chosen:
        return None
    stack = Stack.of(table)
    stacks = [other for other in stack.node.root.node.find_all() if Stack.is_stack(other)]
    elsewhere = [other.node.path for other in stacks if Stack.of(other).environment != stack.environment]
    return (
        f"invalid reference to the table {table.node.path!r} from another account or region, in one of "
        f"{', '.join(sorted(elsewhere))}: the name {name!r}, which CDK generates for it, would replace the table by a "
        "new, empty one; there, write the table's ARN as text, and here, grant to Role.from_role_arn(…)"
    )


class TableDeclarations:
    """All that is declared about a table and its replicas, wherever in the app, each list sorted by name."""

    def __init__(self, table: dynamodb.ITable) -> None:
        self.table = table
        self.aggregator: Construct | None = None
        self.notifier: Construct | None = None
        self.declarations: tuple[Declaration, ...] = ()
        self.api_declarations: tuple[Declaration, ...] = ()
        self.events: tuple[Event, ...] = ()
        self.thresholds: tuple[Threshold, ...] = ()
        self._readers: dict[str, list[Construct]] = {}

    @classmethod
    def of(cls, table: dynamodb.ITable) -> TableDeclarations:
        """Return the declarations of a table, to which more may be added later; replicas have those of the primary."""
        primary = table.node.scope if isinstance(table.node.scope, dynamodb.TableV2) else table
        return cast(TableDeclarations, vars(primary).setdefault(_LIST, cls(primary)))

    @property
    def armed(self) -> tuple[Declaration, ...]:
        """The declarations, with the thresholds that watch them; until all are declared, without."""
        try:
            return flatten((*self.declarations, *self.thresholds))
        except InvalidArgumentError:
            return self.declarations

    def add(
        self,
        *,
        declarations: Iterable[Declarable] = (),
        api_declarations: Iterable[Declaration] = (),
        events: Iterable[Event] = (),
    ) -> None:
        """Add what is counted, shown by an API, or let in; refuse what contradicts the rest, whichever comes first."""
        # Sorted, so that moving a construct within a program does not change the template.
        counted = _sorted((*self.declarations, *flatten(tuple(declarations))))
        visible, all_events = _sorted({*self.api_declarations, *api_declarations}), _sorted({*self.events, *events})
        # Completeness is checked at synth: an aggregate's source may be declared later.
        uncounted = tuple(declared for declared in visible if declared not in counted)
        require_consistent((*counted, *uncounted), all_events, complete=False)
        self.declarations, self.api_declarations, self.events = counted, visible, all_events

    def counting(self, event: Event) -> tuple[Declaration, ...]:
        """Return the declarations whose source is ``event``."""
        return tuple(declared for declared in self.declarations if declared.source == event)

    def add_reader(self, argument: str, reader: Construct, table: dynamodb.ITable) -> None:
        """Register a reader of a table's stream; refuse a third."""
        if str(table.table_stream_arn).endswith(_ANY_STREAM):
            allowed = (
                "a table whose stream has a known ARN, and not that of any stream, which CDK gives replicas: use the "
                "table of the primary Region, or import this one with its table_stream_arn"
            )
            raise InvalidArgumentError(argument, table.node.path, allowed)
        readers = self._readers.setdefault(table.node.addr, [])
        if len(readers) == _MOST_READERS:
            there = " and ".join(repr(construct.node.path) for construct in readers)
            allowed = f"at most {_MOST_READERS} readers per stream, which are {there}; declare more to one of them"
            raise InvalidArgumentError(argument, table.node.path, allowed)
        readers.append(reader)

    def require_aggregator(self, path: str, problem: str) -> str | None:
        """Find a table whose declarations nothing counts, which is the ``problem``."""
        if self.aggregator is not None:
            return None
        problem += f": the table at {path!r} has no aggregator"
        return f"{problem}; create a StreamAggregator for that table anywhere in the app"

    def warn_if_uncounted(self, scope: Construct, find_uncounted: Callable[[], Iterable[str]], use: str) -> None:
        """Warn at synth of the names then found: what ``use`` says is done with them, and nothing counts them."""
        if self.table.table_stream_arn is None:
            return  # Another app counts it.

        def warn() -> None:
            if names := ", ".join(map(repr, find_uncounted())):
                Annotations.of(scope).add_warning_v2(
                    "dynamodb-counters:nothingCounts",
                    f"Nothing in this app counts {names}, which {use}: declare it to the table's StreamAggregator or "
                    "by a WindowedCounter, or acknowledge this if another app counts it, or your code by increment or "
                    "record_once.",
                )

        check_at_synth(scope, warn)


def _sorted(declared: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(sorted(declared, key=lambda item: str(item.name)))
