"""What `Counters` answers about groups: their counts, histograms, places on a board."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dynamodb_counters._declarations import Aggregate, Distinct, Histogram
from dynamodb_counters._declarations.groups import Group
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._reads import groups_by_key as groups
from dynamodb_counters._reads import rankings
from dynamodb_counters._reads.rankings import Ranked
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError


class GroupReads:
    """Reads groups of one table. Part of `Counters`."""

    _table: Table

    def get(self, aggregate: Aggregate, values: Mapping[str, object], *, consistent: bool = False) -> Group:
        """Read one group.

        Parameters
        ----------
        aggregate : Aggregate
            Which aggregate.
        values : mapping of str to str or number
            Its group.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        Group
            With measures of 0 where nothing was counted.
        """
        return groups.get(self._table, aggregate, values, consistent=consistent)

    def get_many(
        self, wanted: Iterable[tuple[Aggregate, Mapping[str, object]]], *, consistent: bool = False
    ) -> list[Group]:
        """Read many groups, 100 a call and many calls at once.

        Parameters
        ----------
        wanted : iterable of (Aggregate, mapping)
            Aggregate and group, any number.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        list of Group
            In the order asked.
        """
        return groups.get_many(self._table, wanted, consistent=consistent)

    def group(
        self, aggregates: Sequence[Aggregate], values: Mapping[str, object], *, consistent: bool = False
    ) -> dict[str, list[Group]]:
        """Read all groups of some aggregates that share a partition key, by one Query.

        Parameters
        ----------
        aggregates : sequence of Aggregate
            Aggregates with one ``pk`` template, none spread; the ``parts`` of a `Hierarchy`, for one.
        values : mapping of str to str or number
            The fields of that template.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        dict of str to list of Group
            Groups by the aggregate's name.
        """
        return groups.group(self._table, aggregates, values, consistent=consistent)

    def distinct(self, declared: Distinct, values: Mapping[str, object], *, consistent: bool = False) -> int:
        """Read how many different members a group has.

        Parameters
        ----------
        declared : Distinct
            Which declaration.
        values : mapping of str to str or number
            The group.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        int
            Different members.
        """
        return int(self.get(declared.total, values, consistent=consistent).measures["distinct"])

    def histogram(
        self, aggregate: Aggregate, values: Mapping[str, object], measure: str, *, consistent: bool = False
    ) -> Mapping[Number, Number]:
        """Read a histogram.

        Parameters
        ----------
        aggregate : Aggregate
            Which aggregate.
        values : mapping of str to str or number
            The group.
        measure : str
            Name of the `Histogram`.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        mapping of number to number
            How many in each bin.

        Raises
        ------
        InvalidArgumentError
            The measure is no histogram.
        """
        if not isinstance(aggregate.measures.get(measure), Histogram):
            raise InvalidArgumentError("measure", measure, f"a Histogram of {aggregate.name!r}")
        bins: Mapping[Number, Number] = self.get(aggregate, values, consistent=consistent).measures[measure]
        return bins

    def top(self, aggregate: Aggregate, values: Mapping[str, object] | None = None, *, count: int = 10) -> list[Ranked]:
        """Read the first groups of a board.

        Parameters
        ----------
        aggregate : Aggregate
            A ranked aggregate.
        values : mapping of str to str or number, optional
            The fields of the board. Default: it has none.
        count : int, optional
            How many at most. Default 10.

        Returns
        -------
        list of Ranked
            Highest score first.
        """
        return rankings.top(self._table, aggregate, values or {}, count)

    def around(self, aggregate: Aggregate, values: Mapping[str, object], *, count: int = 5) -> list[Ranked]:
        """Read a group with its neighbours on the board.

        Parameters
        ----------
        aggregate : Aggregate
            A ranked aggregate.
        values : mapping of str to str or number
            The group.
        count : int, optional
            How many above it and how many below it at most. Default 5.

        Returns
        -------
        list of Ranked
            Highest score first, the group among them; empty if it was never counted.
        """
        return rankings.around(self._table, aggregate, values, count)
