"""What a function may do with the table, by the job it has."""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

from cdk_dynamodb_counters._arguments import require_interface

_ACCEPT: Final = ("dynamodb:PutItem", "dynamodb:PartiQLInsert")
_RECORD_ONCE: Final = ("dynamodb:PutItem", "dynamodb:UpdateItem")
_INCREMENT: Final = ("dynamodb:UpdateItem",)
_READ: Final = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query")
_RETRACT: Final = ("dynamodb:DeleteItem",)
_RESET: Final = ("dynamodb:UpdateItem",)
_REDRIVE: Final = ("dynamodb:Query", "dynamodb:UpdateItem")
_AGGREGATE: Final = ("dynamodb:ConditionCheckItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem")
_STREAM: Final = (
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
)


class TableGrants:
    """Grants of a table: the actions of one job, on this table and the key it is encrypted with only."""

    _table: dynamodb.ITableV2

    def grant_accept(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow to accept events: conditional inserts, one by one and in batches.

        Parameters
        ----------
        grantee : IGrantable
            A function or role.

        Returns
        -------
        Grant
            What was granted.

        Examples
        --------
        >>> counters.grant_accept(function)  # doctest: +SKIP
        """
        return _grant(self._table, grantee, _ACCEPT)

    def grant_record_once(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow to record an event and its counts in one transaction.

        Parameters
        ----------
        grantee : IGrantable
            A function or role.

        Returns
        -------
        Grant
            What was granted.
        """
        return _grant(self._table, grantee, _RECORD_ONCE)

    def grant_increment(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow to increment counters, which is not idempotent.

        Parameters
        ----------
        grantee : IGrantable
            A function or role.

        Returns
        -------
        Grant
            What was granted.
        """
        return _grant(self._table, grantee, _INCREMENT)

    def grant_retract(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow to delete events, which takes back what they had counted.

        Parameters
        ----------
        grantee : IGrantable
            A function or role.

        Returns
        -------
        Grant
            What was granted.
        """
        return _grant(self._table, grantee, _RETRACT)

    def grant_reset(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow to set aggregates to zero.

        Parameters
        ----------
        grantee : IGrantable
            A function or role.

        Returns
        -------
        Grant
            What was granted.
        """
        return _grant(self._table, grantee, _RESET)

    def grant_read_counts(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow to read counts, windows and boards, and the events beside them; no scans.

        It is the only grant that covers the table's indexes, which boards are read from.

        Parameters
        ----------
        grantee : IGrantable
            A function or role.

        Returns
        -------
        Grant
            What was granted.
        """
        return _grant(self._table, grantee, _READ, reading=True)

    def grant_redrive(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow to list quarantine and to have its records counted after all.

        Parameters
        ----------
        grantee : IGrantable
            A function or role.

        Returns
        -------
        Grant
            What was granted.
        """
        return _grant(self._table, grantee, _REDRIVE)


def grant_aggregation(table: dynamodb.ITableV2, grantee: iam.IGrantable) -> iam.Grant:
    """Allow to read the table's stream and to keep its counts."""
    stream = iam.Grant.add_to_principal(
        grantee=grantee, actions=list(_STREAM), resource_arns=[str(table.table_stream_arn)]
    )
    return _grant(table, grantee, _AGGREGATE).combine(stream)


def _grant(
    table: dynamodb.ITableV2, grantee: iam.IGrantable, actions: tuple[str, ...], *, reading: bool = False
) -> iam.Grant:
    require_interface("grantee", grantee, "IGrantable", "something with an identity: a function or a role")
    # The table's own grant() covers its indexes, which only boards are read from. None: if it has some.
    granted = dynamodb.TableGrants(table=table, has_index=None if reading else False).actions(grantee, *actions)
    if table.encryption_key is None:
        return granted
    key = table.encryption_key
    return granted.combine(key.grant_decrypt(grantee) if reading else key.grant_encrypt_decrypt(grantee))
