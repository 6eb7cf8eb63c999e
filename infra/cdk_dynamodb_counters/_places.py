"""The accounts and regions of tables and of what uses them: elsewhere, a table's name means another table."""

from __future__ import annotations

from typing import Final, TypeAlias

from aws_cdk import Stack, Token
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from cdk_dynamodb_counters._synth import resolved_property
from dynamodb_counters.errors import InvalidArgumentError

_Place: TypeAlias = tuple[str | None, str | None]
"""Account and region, each None if it is known only at deployment."""

_STREAM: Final = "/stream/"
_COLONS: Final = 5
"""Colons of an ARN before its resource."""


def require_same_place(argument: str, user: Construct, table: dynamodb.ITable, *, any_account: bool = False) -> None:
    """Refuse a table of another account or region than the construct's stack, and one with another table's stream.

    With `any_account`, an import may be of another account: it is named by its ARN alone.
    """
    is_import = _is_import(table)
    if is_import:
        _require_own_stream(argument, table)
    stack, of_table = Stack.of(user), Stack.of(table)
    if stack is of_table and not is_import:
        return
    here = (_known(stack.account), _known(stack.region))
    there = _place_of_import(table) if is_import else (_known(of_table.account), _known(of_table.region))
    # A place that an import leaves open is where its stack is deployed.
    other_account, other_region = (
        one != other and not (is_import and None in (one, other)) for one, other in zip(here, there, strict=True)
    )
    if other_region or (other_account and not (any_account and is_import)):
        account, region = (one or "that is known only at deployment" for one in here)
        allowed = f"a table of account {account} and region {region}, where {user.node.path!r} is"
        raise InvalidArgumentError(argument, table.node.path, allowed)


def chosen_name(table: dynamodb.ITable) -> object:
    """Return the name that the template gives a table that the app defines, or None."""
    resource = table.node.default_child
    if not isinstance(resource, dynamodb.CfnGlobalTable | dynamodb.CfnTable):
        return None
    return resolved_property(resource, "tableName")


def generated_name(table: dynamodb.ITable, chosen: object) -> str | None:
    """Find a name that CDK gives the table because something elsewhere refers to it; `chosen` is its user's."""
    name = chosen_name(table)
    if name == chosen:
        return None
    stack = Stack.of(table)
    stacks = [one for one in stack.node.root.node.find_all() if Stack.is_stack(one)]
    elsewhere = [one.node.path for one in stacks if Stack.of(one).environment != stack.environment]
    return (
        f"invalid reference to the table {table.node.path!r} from another account or region, in one of "
        f"{', '.join(sorted(elsewhere))}: the name {name!r}, which CDK generates for it, would replace the table by a "
        "new, empty one; there, write the table's ARN as text, and here, grant to Role.from_role_arn(…)"
    )


def global_table(table: dynamodb.ITable) -> dynamodb.ITable:
    """Return the table that the app defines of a replica (`TableV2.replica`), or else the table itself."""
    parent = table.node.scope
    return parent if isinstance(parent, dynamodb.TableV2) else table


def _place_of_import(table: dynamodb.ITable) -> _Place:
    *_, region, account, _ = _parts(table)
    return account or _known(table.env.account), region or _known(table.env.region)


def _require_own_stream(argument: str, table: dynamodb.ITable) -> None:
    """Refuse an import whose stream belongs to another table."""
    stream = table.table_stream_arn
    if stream is None or Token.is_unresolved(stream):
        return
    arn, name = str(table.table_arn), table.table_name
    own = stream.partition(_STREAM)[0]
    is_own = own == arn if not Token.is_unresolved(arn) else Token.is_unresolved(name) or own.endswith(f":table/{name}")
    if not is_own:
        expected = "the stream of that table, of the same account and region"
        raise InvalidArgumentError(argument, f"{table.node.path} with the stream {stream}", expected)


def _parts(table: dynamodb.ITable) -> list[str | None]:
    """Return the parts of an import's stream ARN before its colons; None for what is not known."""
    stream = table.table_stream_arn
    if stream is None or Token.is_unresolved(stream) or stream.count(":") < _COLONS:
        return [None] * (_COLONS + 1)
    return list(stream.split(":", _COLONS))


def _is_import(table: dynamodb.ITable) -> bool:
    return not isinstance(table.node.default_child, dynamodb.CfnGlobalTable | dynamodb.CfnTable)


def _known(value: str) -> str | None:
    return None if Token.is_unresolved(value) else value
