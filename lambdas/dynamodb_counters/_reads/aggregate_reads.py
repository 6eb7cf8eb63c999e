"""Read all groups of one partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dynamodb_counters._control.statuses import Standing
from dynamodb_counters._declarations import Aggregate, Distinct, Hierarchy
from dynamodb_counters._declarations.generations import base_name
from dynamodb_counters._declarations.groups import Group, given, group_of, require_fields, values_of
from dynamodb_counters._declarations.kinds import require_aggregate
from dynamodb_counters._items.escaping import LAST_CHARACTER
from dynamodb_counters._items.table_schema import PK, SK, TYPE
from dynamodb_counters._reads.group_reads import GroupReads
from dynamodb_counters.errors import InvalidArgumentError

_FIRST_CHARACTER: Final = " "  # Keys escape all characters before it.


class AggregateReads(GroupReads):
    """Reads aggregates of one table. Part of `Counters`."""

    def partition(
        self,
        aggregates: Sequence[Aggregate | Distinct | Hierarchy],
        values: Mapping[str, object] | None = None,
        /,
        *,
        consistent: bool = False,
        **fields: object,
    ) -> dict[str, list[Group]]:
        """Read all groups of some aggregates that share a partition key by one Query.

        Parameters
        ----------
        aggregates : sequence of Aggregate, Distinct or Hierarchy
            Declarations with one ``pk`` template and ``write_shards=1``. A `Hierarchy` is read with all its levels, a
            `Distinct` with its members, whose groups are those of ``<name>-members``.
        values, consistent
            As in `get`.
        **fields : str or number
            A value per field of that template.

        Returns
        -------
        dict of str to list of Group
            Groups by the aggregate's name.

        Examples
        --------
        >>> counters.partition([RISK], region="emea")["risk-region"]  # doctest: +SKIP
        [Group(values={'region': 'emea'}, measures={'trades': 7}, complete=True, as_declared=True)]
        """
        if isinstance(aggregates, Distinct | Hierarchy):
            raise InvalidArgumentError("aggregates", aggregates.name, "a sequence, of one declaration or several")
        if not isinstance(aggregates, Sequence):
            raise InvalidArgumentError("aggregates", aggregates, "a sequence of aggregates; for one, use scan()")
        declared = [
            part for each in aggregates for part in (each._parts if isinstance(each, Distinct | Hierarchy) else (each,))
        ]
        for part in declared:
            require_aggregate(part, "aggregates")
        names = [part.name for part in declared]
        current = [self._current(part) for part in declared]
        standings = {one.name: self._standing(part) for one, part in zip(current, declared, strict=True)}
        shared = len({aggregate.pk for aggregate in current}) == 1
        if not shared or any(aggregate.write_shards > 1 for aggregate in current):
            raise InvalidArgumentError("aggregates", names, "aggregates with one pk template and write_shards=1")
        values = given(values, fields)
        require_fields(" and ".join(names), [(one, one._pk_template.fields) for one in (*declared, *current)], values)
        found: dict[str, list[Group]] = {name: [] for name in names}
        for _, aggregate, group in self._groups(current, standings, values, _sort_key_range(current), consistent):
            found[base_name(aggregate.name)].append(group)
        return found

    def scan(
        self,
        aggregate: Aggregate,
        values: Mapping[str, object] | None = None,
        /,
        *,
        after: str = "",
        consistent: bool = False,
        **fields: object,
    ) -> Iterator[tuple[str, Group]]:
        """Read the groups of one partition as they are asked for, in the order of their sort keys.

        Parameters
        ----------
        aggregate : Aggregate
            One with ``write_shards=1``.
        after : str, optional
            Only groups whose sort keys come after this one, of the same aggregate. Default: all.
        values, consistent
            As in `get`.
        **fields : str or number
            A value per field of its ``pk`` template.

        Returns
        -------
        iterator of (str, Group)
            Each group with its sort key.

        Examples
        --------
        >>> key, group = next(counters.scan(PER_CLIENT, url="/"))  # doctest: +SKIP
        """
        values = given(values, fields)
        declared, aggregate = aggregate, self._current(aggregate)
        require_fields(declared.name, [(one, one._pk_template.fields) for one in (declared, aggregate)], values)
        if aggregate.write_shards > 1:
            raise InvalidArgumentError("aggregate", aggregate.name, "an aggregate with write_shards=1")
        first, last = _sort_key_range([aggregate])
        if after and not first <= after <= last:
            raise InvalidArgumentError("after", after, f"a sort key of {aggregate.name!r}")
        standings = {aggregate.name: self._standing(declared)}
        found = self._groups([aggregate], standings, values, (after or first, last), consistent)
        return ((key, group) for key, _, group in found if key > after)

    def _groups(
        self,
        aggregates: Sequence[Aggregate],
        standings: Mapping[str, Standing],
        values: Mapping[str, object],
        sort_keys: tuple[str, str],
        consistent: bool,
    ) -> Iterator[tuple[str, Aggregate, Group]]:
        by_name = {aggregate.name: aggregate for aggregate in aggregates}
        pages = self._table.client.get_paginator("query").paginate(
            TableName=self._table.name,
            # From the first aggregate's items to the last one's, which leaves out most events around them.
            KeyConditionExpression=f"{PK} = :pk AND {SK} BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":pk": {"S": aggregates[0]._pk_template.render(values)},
                ":first": {"S": sort_keys[0]},
                ":last": {"S": sort_keys[1]},
            },
            ConsistentRead=consistent,
        )
        for page in pages:
            for item in page["Items"]:
                aggregate = by_name.get(item.get(TYPE, {}).get("S", ""))
                if aggregate is not None:
                    known = {**values, **(values_of(aggregate, item) or {})}
                    group = group_of(aggregate, known, [item], standings[aggregate.name])
                    yield item[SK]["S"], aggregate, group


def _sort_key_range(aggregates: Sequence[Aggregate]) -> tuple[str, str]:
    templates = [aggregate._sk_template for aggregate in aggregates]
    first = min(template.prefix for template in templates)
    # A template without fields has one item; keys that continue it, such as a Distinct's members, stay unread.
    last = max(template.prefix + (LAST_CHARACTER if template.fields else "") for template in templates)
    return first or _FIRST_CHARACTER, last
