"""How a table that other code writes names its keys and its TTL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dynamodb_counters._items.table_schema import PK, SK, TTL
from dynamodb_counters.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The attributes that a table keeps its keys and its TTL in.

    Parameters
    ----------
    partition_key : str
        The partition key, of any type.
    sort_key : str or None, optional
        The sort key, of any type. Default None: the table has none.
    ttl : str or None, optional
        When DynamoDB may delete an item, in seconds since 1970. Default None: the table has no TTL.

    Examples
    --------
    >>> TableKeys("orderId", ttl="expiresAt").sort_key is None
    True
    """

    partition_key: str
    sort_key: str | None = None
    ttl: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.partition_key, str) or not self.partition_key:
            raise InvalidArgumentError("partition_key", self.partition_key, "an attribute name")
        for argument, name in (("sort_key", self.sort_key), ("ttl", self.ttl)):
            if name is not None and (not isinstance(name, str) or not name):
                raise InvalidArgumentError(argument, name, "an attribute name, or None")
        names = [name for name in (self.partition_key, self.sort_key, self.ttl) if name is not None]
        if len({*names}) < len(names):
            raise InvalidArgumentError("sort_key", self.sort_key, "a different attribute for each key and the TTL")


OURS: Final = TableKeys(PK, SK, TTL)
"""Keys of the tables that this package makes."""
