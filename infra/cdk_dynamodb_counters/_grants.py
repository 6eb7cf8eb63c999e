"""IAM permissions on the table, one set per job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

from cdk_dynamodb_counters._arguments import require_events, require_interface
from cdk_dynamodb_counters._registry import Registry
from dynamodb_counters._declarations import Event
from dynamodb_counters._items.table_schema import LEASES_PREFIX
from dynamodb_counters.errors import InvalidArgumentError

_ERASE: Final = ("DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem")


class TableGrants:
    """Grants of a table.

    Every ``grant_*`` method takes ``grantee``, a function or role, and returns the ``Grant``. It allows one job on this
    table only, and the use of the table's encryption key if that is customer managed. Those that let events in also
    take the ``events`` it is for: synth then fails if one of them could be mistaken for another item of the table.
    """

    _table: dynamodb.ITable

    def grant_accept(self, grantee: iam.IGrantable, *events: Event) -> iam.Grant:
        """Allow accepting the events, at least one, one by one and in batches; packed ones also to be retracted."""
        if not events:
            raise InvalidArgumentError("events", events, "at least one Event, as in grant_accept(function, VIEW)")
        self._register(events)
        actions = [action for event in events for action in accepting(event)]
        return grant(self._table, grantee, *dict.fromkeys(actions))

    def grant_record_once(self, grantee: iam.IGrantable, *events: Event) -> iam.Grant:
        """Allow recording an event and its counts in one transaction."""
        self._register(events)
        return grant(self._table, grantee, "GetItem", "PutItem", "UpdateItem")

    def grant_increment(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow incrementing counters, which is not idempotent."""
        return grant(self._table, grantee, "GetItem", "UpdateItem")

    def grant_leases(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow taking calls from quotas, and no change of any count."""
        return grant(self._table, grantee, "UpdateItem", keys=f"{LEASES_PREFIX}*")

    def grant_retract(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow deleting events, which subtracts what they added to the counts."""
        return grant(self._table, grantee, "DeleteItem")

    def grant_erase(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow erasing events from the table, its chunks and its quarantine; it reads the whole table."""
        return grant(self._table, grantee, *_ERASE)

    def grant_reset(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow resetting counters to zero."""
        return grant(self._table, grantee, "GetItem", "UpdateItem")

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow reading and explaining counts, windows, leaderboards and events, but no Scan of the table.

        This is the only grant that covers the table's indexes: leaderboards are read from one.
        """
        # An index can only be queried.
        items = grant(self._table, grantee, "BatchGetItem", "GetItem", reading=True)
        return items.combine(grant(self._table, grantee, "Query", reading=True, indexes=True))

    def grant_redrive(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow listing quarantined records and redriving them."""
        return grant(self._table, grantee, "Query", "UpdateItem")

    def _register(self, events: Sequence[Event]) -> None:
        Registry.of(self._table).registration(self._table).add_events(*require_events("events", events))


def accepting(event: Event) -> tuple[str, ...]:
    """Return the actions that accept an event."""
    return ("PutItem", "PartiQLInsert") if event.packed is None else ("PutItem", "Query")


def grant(
    table: dynamodb.ITable,
    grantee: iam.IGrantable,
    *actions: str,
    reading: bool = False,
    indexes: bool = False,
    keys: str | None = None,
) -> iam.Grant:
    """Allow ``actions`` on the table, with ``indexes`` on those too, and on its key; ``reading`` only decrypts.

    With ``keys``, only on items whose partition key is like that.
    """
    require_interface("grantee", grantee, "IGrantable", "something with an IAM identity, such as a function or role")
    # has_index=None grants the indexes only if the table has some.
    grants = dynamodb.TableGrants(table=table, has_index=None if indexes else False)
    granted = grants.actions(grantee, *(f"dynamodb:{action}" for action in actions))
    if keys is not None:
        for statement in (*granted.principal_statements, *granted.resource_statements):
            # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
            statement.add_condition("ForAllValues:StringLike", {"dynamodb:LeadingKeys": [keys]})
    if table.encryption_key is None:
        return granted
    key = table.encryption_key
    return granted.combine(key.grant_decrypt(grantee) if reading else key.grant_encrypt_decrypt(grantee))
