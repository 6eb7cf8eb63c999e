"""Read groups: one, many at once, or all of a partition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from dynamodb_counters._control.statuses import Standing, Statuses
from dynamodb_counters._declarations import Aggregate, Composite, Distinct
from dynamodb_counters._declarations.groups import Given, Group, canonical_fields, given, group_key, group_of, values_of
from dynamodb_counters._declarations.kinds import require_declaration
from dynamodb_counters._fold.item_layout import ItemLayout, require_kept
from dynamodb_counters._items.escaping import LAST_CHARACTER
from dynamodb_counters._items.table_schema import SK, TYPE
from dynamodb_counters._reads.page_reads import read_items, walk
from dynamodb_counters._reads.table_reads import TableReads, current, query
from dynamodb_counters.errors import InvalidArgumentError

_Read: TypeAlias = tuple[str, Aggregate, Standing]
"""The name that is declared, the generation that readers use, and how it stands."""

_PLACE: Final = re.compile(r"[0-9a-f]{32}")  # A key of a group in a page.
_FIRST_CHARACTER: Final = " "  # Keys escape all characters before it.


class GroupReads(TableReads):
    def get(
        self, aggregate: Aggregate | Distinct, values: Given = None, /, *, consistent: bool = False, **fields: object
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
        return self.get_many([(aggregate, given(values, fields))], consistent=consistent)[0]

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
            aggregate = declared.total if isinstance(declared, Distinct) else declared
            require_declaration(aggregate, Aggregate)
            asked.append(current(self._table, aggregate, values))
        keys = [(ItemLayout(kept), group_key(kept, values)) for kept, values, _ in asked]
        found = read_items(self._table, keys, consistent=consistent)
        return [
            group_of(kept, values, items, standing)
            for (kept, values, standing), items in zip(asked, found, strict=True)
        ]

    def partition(
        self,
        aggregates: Sequence[Aggregate | Distinct],
        values: Given = None,
        /,
        *,
        consistent: bool = False,
        **fields: object,
    ) -> dict[str, list[Group]]:
        """Read all groups of some aggregates that share a partition key by one Query.

        Parameters
        ----------
        aggregates : sequence of Aggregate or Distinct
            Declarations with one ``pk`` template and ``write_shards=1``. A `Distinct` is read with its members, whose
            groups are those of ``<name>-members``.
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
        >>> counters.partition([REGIONS, DESKS], region="emea")["regions"]  # doctest: +SKIP
        [Group(values={'region': 'emea'}, measures={'trades': 7}, complete=True, as_declared=True)]
        """
        if isinstance(aggregates, Composite):
            raise InvalidArgumentError("aggregates", aggregates.name, "a sequence, of one declaration or several")
        if not isinstance(aggregates, Sequence):
            raise InvalidArgumentError("aggregates", aggregates, "a sequence of aggregates; for one, use scan()")
        declared = [part for each in aggregates for part in (each._parts if isinstance(each, Distinct) else (each,))]
        for part in declared:
            require_declaration(part, Aggregate, "aggregates")
        names = [part.name for part in declared]
        statuses = Statuses.of_table(self._table)
        kept = [statuses.current(part) for part in declared]
        shared = len({aggregate.pk for aggregate in kept}) == 1
        if not shared or any(aggregate.write_shards > 1 for aggregate in kept):
            raise InvalidArgumentError("aggregates", names, "aggregates with one pk template and write_shards=1")
        among = [(one, one._listed_by) for one in (*declared, *kept)]
        texts = canonical_fields(" and ".join(names), among, given(values, fields))
        for one in kept:
            require_kept(one, texts, self._table.clock())
        read = [(name, one, statuses.standing(part)) for name, one, part in zip(names, kept, declared, strict=True)]
        found: dict[str, list[Group]] = {name: [] for name in names}
        queries = [*([each] for each in read if each[1].pages), [each for each in read if not each[1].pages]]
        for some in filter(None, queries):
            for _, name, group in self._groups(some, texts, consistent=consistent):
                found[name].append(group)
        return found

    def scan(
        self,
        aggregate: Aggregate,
        values: Given = None,
        /,
        *,
        after: str = "",
        consistent: bool = False,
        **fields: object,
    ) -> Iterator[tuple[str, Group]]:
        """Read the groups of one partition as they are asked for, in the order of their sort keys.

        Groups in pages come in the order of their digests.

        Parameters
        ----------
        aggregate : Aggregate
            One with ``write_shards=1``.
        after : str, optional
            Only groups whose keys come after this one, of the same aggregate. Default: all.
        values, consistent
            As in `get`.
        **fields : str or number
            A value per field of its ``pk`` template.

        Returns
        -------
        iterator of (str, Group)
            Each group with its key.

        Examples
        --------
        >>> key, group = next(counters.scan(PER_CLIENT, url="/"))  # doctest: +SKIP
        """
        require_declaration(aggregate, Aggregate)
        kept, texts, standing = current(self._table, aggregate, given(values, fields), lambda one: one._listed_by)
        if kept.write_shards > 1:
            raise InvalidArgumentError("aggregate", kept.name, "an aggregate with write_shards=1")
        read = (aggregate.name, kept, standing)
        first, last = sort_key_range([kept])
        if after and not (_PLACE.fullmatch(after) if kept.pages else first <= after <= last):
            allowed = f"a key with which a scan of {kept.name!r} came" if kept.pages else f"a sort key of {kept.name!r}"
            raise InvalidArgumentError("after", after, allowed)
        found = self._groups([read], texts, after, consistent=consistent)
        return ((key, group) for key, _, group in found if key > after)

    def _groups(
        self, read: Sequence[_Read], values: Mapping[str, object], after: str = "", *, consistent: bool
    ) -> Iterator[tuple[str, str, Group]]:
        """The groups of generations, or of one in pages, each with its key and the name that is declared."""
        by_name, kept = {each[1].name: each for each in read}, read[0][1]
        if kept.pages:
            pages = walk(self._table, kept, values, after=after, consistent=consistent)
            found = ((kept.name, key, item) for key, item in pages)
        else:
            # From the first aggregate's items to the last one's, which leaves out most events around them.
            first, last = sort_key_range([one for _, one, _ in read])
            items = query(self._table, kept._pk_template.render(values), (after or first, last), consistent=consistent)
            found = ((item.get(TYPE, {}).get("S", ""), item[SK]["S"], item) for item in items)
        for kind, key, item in found:
            if kind in by_name:
                name, one, standing = by_name[kind]
                yield key, name, group_of(one, {**values, **(values_of(one, item) or {})}, [item], standing)


def sort_key_range(aggregates: Sequence[Aggregate]) -> tuple[str, str]:
    templates = [aggregate._sk_template for aggregate in aggregates]
    first = min(template.prefix for template in templates)
    # A template without fields has one item; keys that continue it, such as a Distinct's members, stay unread.
    last = max(template.prefix + (LAST_CHARACTER if template.fields else "") for template in templates)
    return first or _FIRST_CHARACTER, last
