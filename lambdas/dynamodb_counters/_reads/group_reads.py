"""Read groups by key: one, or many at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dynamodb_counters._control.statuses import Statuses
from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.groups import Group, given, group_keys, group_of, identity, require_fields
from dynamodb_counters._declarations.kinds import require_aggregate
from dynamodb_counters._reads.batch_get import get_items
from dynamodb_counters._table import Table


class GroupReads:
    """Reads groups of one table. Part of `Counters`."""

    _table: Table

    def get(
        self,
        aggregate: Aggregate,
        values: Mapping[str, object] | None = None,
        /,
        *,
        consistent: bool = False,
        **fields: object,
    ) -> Group:
        """Read one group; its measures are 0 if nothing was counted.

        Parameters
        ----------
        aggregate : Aggregate
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
        values, current = given(values, fields), self._current(aggregate)
        require_fields(aggregate.name, (*aggregate.fields, *current.fields), values)
        if current.write_shards > 1:
            return self.get_many([(aggregate, values)], consistent=consistent)[0]
        [key] = group_keys(current, values)
        answer = self._table.client.get_item(TableName=self._table.name, Key=key, ConsistentRead=consistent)
        return group_of(current, values, [answer.get("Item", {})], complete=self._is_whole(aggregate))

    def get_many(
        self, wanted: Iterable[tuple[Aggregate, Mapping[str, object]]], *, consistent: bool = False
    ) -> list[Group]:
        """Read many groups, in their order: 100 per call and many calls at once.

        Parameters
        ----------
        wanted : iterable of (Aggregate, mapping)
            Aggregates with the values of their groups.
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
        pairs = [(aggregate, self._current(aggregate), values) for aggregate, values in wanted]
        for aggregate, current, values in pairs:
            require_fields(aggregate.name, (*aggregate.fields, *current.fields), values)
        asked = [
            (current, values, group_keys(current, values), self._is_whole(aggregate))
            for aggregate, current, values in pairs
        ]
        found = get_items(self._table, [key for _, _, keys, _ in asked for key in keys], consistent=consistent)
        return [
            group_of(current, values, [found.get(identity(key), {}) for key in keys], complete=is_whole)
            for current, values, keys, is_whole in asked
        ]

    def _current(self, aggregate: Aggregate) -> Aggregate:
        """The generation that readers use."""
        require_aggregate(aggregate)
        return Statuses.of_table(self._table).current(aggregate)

    def _is_whole(self, aggregate: Aggregate) -> bool:
        return Statuses.of_table(self._table).status(aggregate.name).whole
