"""Read groups by key: one, or many at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dynamodb_counters._control.statuses import Standing, Statuses
from dynamodb_counters._declarations import Aggregate, Distinct
from dynamodb_counters._declarations.groups import Group, given, group_keys, group_of, identity, require_fields
from dynamodb_counters._declarations.kinds import require_aggregate
from dynamodb_counters._reads.batch_get import get_items
from dynamodb_counters._table import Table


class GroupReads:
    """Reads groups of one table. Part of `Counters`."""

    _table: Table

    def get(
        self,
        aggregate: Aggregate | Distinct,
        values: Mapping[str, object] | None = None,
        /,
        *,
        consistent: bool = False,
        **fields: object,
    ) -> Group:
        """Read one group; its measures are 0 if nothing was counted.

        Parameters
        ----------
        aggregate : Aggregate or Distinct
            The measure of a `Distinct` is ``distinct``, the number of different members.
        values : mapping of str to str or number, optional
            The group as a mapping, where a field has a name that no keyword can have: ``{"tags[]": "red"}``.
        consistent : bool, optional
            Whether to read strongly consistently, at twice the read units. Default False.
        **fields : str or number
            The group: a value per field.

        Examples
        --------
        >>> counters.get(VIEWS, url="/").measures["views"]  # doctest: +SKIP
        42
        """
        values, aggregate = given(values, fields), _aggregate(aggregate)
        current = self._current(aggregate)
        require_fields(aggregate.name, [(one, one.fields) for one in (aggregate, current)], values)
        if current.write_shards > 1:
            return self.get_many([(aggregate, values)], consistent=consistent)[0]
        [key] = group_keys(current, values)
        answer = self._table.client.get_item(TableName=self._table.name, Key=key, ConsistentRead=consistent)
        return group_of(current, values, [answer.get("Item", {})], self._standing(aggregate))

    def get_many(
        self, wanted: Iterable[tuple[Aggregate | Distinct, Mapping[str, object]]], *, consistent: bool = False
    ) -> list[Group]:
        """Read many groups, in their order: 100 per call and many calls at once.

        Parameters
        ----------
        wanted : iterable of (Aggregate or Distinct, mapping)
            Declarations with the values of their groups.
        consistent
            As in `get`.

        Raises
        ------
        TimeoutError
            DynamoDB left some unread after several tries.

        Examples
        --------
        >>> counters.get_many([(VIEWS, {"url": "/"}), (SITE, {})])  # doctest: +SKIP
        """
        asked = []
        for declared, values in wanted:
            aggregate = _aggregate(declared)
            current = self._current(aggregate)
            require_fields(aggregate.name, [(one, one.fields) for one in (aggregate, current)], values)
            asked.append((current, values, group_keys(current, values), self._standing(aggregate)))
        found = get_items(self._table, [key for _, _, keys, _ in asked for key in keys], consistent=consistent)
        return [
            group_of(current, values, [found.get(identity(key), {}) for key in keys], standing)
            for current, values, keys, standing in asked
        ]

    def _current(self, aggregate: Aggregate) -> Aggregate:
        """The generation that readers use."""
        require_aggregate(aggregate)
        return Statuses.of_table(self._table).current(aggregate)

    def _standing(self, aggregate: Aggregate) -> Standing:
        return Statuses.of_table(self._table).standing(aggregate)


def _aggregate(declared: Aggregate | Distinct) -> Aggregate:
    return declared.total if isinstance(declared, Distinct) else declared
