"""Extremes: the largest and smallest values of a group, such as its latest event, by an index of values."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta

from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.checks import require_attribute
from dynamodb_counters._declarations.composites import Grouped
from dynamodb_counters._declarations.default_keys import Fields, field_names, named_key
from dynamodb_counters._declarations.frozen import shown
from dynamodb_counters._declarations.measures import Count
from dynamodb_counters._items.derived_fields import ORDER


@dataclass(frozen=True, slots=True)
class Extremes(Grouped):
    """The largest and smallest values of each group: maximum and minimum, first and latest, the ten slowest.

    It counts the items of each value, in an item per value whose key is in the order of values. An item that is
    corrected or deleted takes its value back. A batch writes an item per value that it touches.

    Parameters
    ----------
    source : Event or Items
    attribute : str
        A number, or a time in ISO 8601 with an offset; an item without it goes to quarantine.
    show : str or sequence of str, optional
        Fields that are read with a value, such as the URL of the latest view. Values that are equal are in the order of
        these, so they are also what ties break by. Default: none.
    name, by, where, on_expiry, on_change
        As in `Aggregate`.
    retention : timedelta or None, optional
        As in `Aggregate`, of a group with a time in `by`. Default None: for good.

    Examples
    --------
    >>> view = Event("view", key=("url", "time", "client"))
    >>> Extremes("latest", view, by="client", attribute="time", show="url").fields
    ('client',)
    """

    _: KW_ONLY
    attribute: str
    show: Fields = ()
    retention: timedelta | None = field(default=None, repr=False)

    __repr__ = shown

    def __post_init__(self) -> None:
        Grouped.__post_init__(self)
        object.__setattr__(self, "show", field_names("show", self.show))
        require_attribute("attribute", self.attribute)
        _ = self._counted

    @property
    def _counted(self) -> Aggregate:
        """The aggregate that counts the items of each value."""
        value = f"{self.attribute}:{ORDER}"
        pk, sk = named_key(self.name, self.fields), named_key(self.name, (value, *self.show))
        return self._part(self.name, pk=pk, sk=sk, items=Count())
