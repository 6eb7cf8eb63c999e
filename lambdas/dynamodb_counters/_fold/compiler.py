"""Programs: declarations made ready to run, with the keys of their items."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final

from dynamodb_counters._declarations import BUCKET_FIELD, TIER_FIELD, WRITE_SHARD_FIELD, Aggregate, Declaration, Window
from dynamodb_counters._fold.contributions import GroupKey, compile_aggregate, compile_window
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.key_templates import is_hashed
from dynamodb_counters._items.table_schema import PK, SK, STREAM_RETENTION_HOURS, is_reserved
from dynamodb_counters._timeline.tiers import BY_LETTER
from dynamodb_counters._timeline.times import HOUR

_ZERO: Final = {"N": "0"}


class Program:
    """One declaration, ready to run.

    Parameters
    ----------
    declaration : Aggregate or Window
        What to compile.

    Attributes
    ----------
    name : str
        The declaration's name.
    keeps_expired : bool
        Whether an item deleted by TTL stays counted.
    contribute : callable
        Takes an image and the record's creation time (seconds since 1970), gives a tuple of `Contribution`, or `LATE`;
        raises `MalformedImageError` for an image it cannot use.
    """

    __slots__ = (
        "_names",
        "_pk",
        "_pk_places",
        "_sk",
        "_sk_places",
        "_spread",
        "_window",
        "contribute",
        "declaration",
        "keeps_expired",
        "name",
    )

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.name = declaration.name
        self.keeps_expired = declaration.on_expiry == "keep"
        self._pk, self._sk = declaration.pk_template, declaration.sk_template
        self._window = declaration if isinstance(declaration, Window) else None
        self._names = (*declaration.fields, *((TIER_FIELD, BUCKET_FIELD) if self._window else ()))
        self._spread = 1 if isinstance(declaration, Window) else declaration.write_shards
        places = {name: place for place, name in enumerate((*self._names, WRITE_SHARD_FIELD))}
        self._pk_places = [places[field] for field in self._pk.fields]
        self._sk_places = [places[field] for field in self._sk.fields]
        self.contribute = (
            compile_window(self, declaration)
            if isinstance(declaration, Window)
            else compile_aggregate(self, declaration)
        )

    def key(self, group: GroupKey, feed: str) -> dict[str, str]:
        """Render the key of a group's item.

        Parameters
        ----------
        group : tuple
            As in a `Contribution`.
        feed : str
            Where the numbers come from: a stream shard. Decides which item of a spread group it is.

        Returns
        -------
        dict of str to str
            Partition and sort key.
        """
        texts = self._texts(group)
        if self._spread > 1:
            texts = (*texts, _part(feed, self._spread))
        return {
            PK: self._pk.render_texts([texts[place] for place in self._pk_places]),
            SK: self._sk.render_texts([texts[place] for place in self._sk_places]),
        }

    def values(self, group: GroupKey) -> dict[str, str]:
        """Name the texts of a group.

        Parameters
        ----------
        group : tuple
            As in a `Contribution`.

        Returns
        -------
        dict of str to str
            Field to text; for a window also the tier and the start of the bucket.
        """
        return dict(zip(self._names, self._texts(group), strict=True))

    def unparsed(self, group: GroupKey, key: dict[str, str]) -> dict[str, str]:
        """Give the values to store as attributes, because a hashed key does not tell them.

        Parameters
        ----------
        group : tuple
            As in a `Contribution`.
        key : dict of str to str
            The group's key.

        Returns
        -------
        dict of str to str
            Field to text; empty when the key can be parsed.
        """
        if not (is_hashed(key[PK]) or is_hashed(key[SK])):
            return {}
        return {
            name: text
            for template, rendered in ((self._pk, key[PK]), (self._sk, key[SK]))
            if is_hashed(rendered)
            for name, text in self.values(group).items()
            if name in template.fields and not is_reserved(name)
        }

    def board(self, group: GroupKey, key: dict[str, str]) -> tuple[str, str] | None:
        """Tell where a group is ranked.

        Parameters
        ----------
        group : tuple
            As in a `Contribution`.
        key : dict of str to str
            The group's key.

        Returns
        -------
        tuple of str or None
            Partition key in the ranking index, and the attribute it is ranked by; None for one that is not ranked.
        """
        ranking = self.declaration.ranking if isinstance(self.declaration, Aggregate) else None
        if ranking is None:
            return None
        values = {**self.values(group), WRITE_SHARD_FIELD: _part(f"{key[PK]}\0{key[SK]}", ranking.write_shards)}
        return ranking.template.render(values), ranking.by

    def expires_at(self, group: GroupKey) -> int | None:
        """Tell when a group's item may be deleted.

        Parameters
        ----------
        group : tuple
            As in a `Contribution`.

        Returns
        -------
        int or None
            Seconds since 1970; None for an item kept for good.
        """
        if self._window is None or self._window.retention is None:
            return None
        letter, bucket = group[-2:]
        return int(BY_LETTER[letter].end(bucket) + self._window.retention.total_seconds())

    def gathers_watermarks(self, group: GroupKey) -> bool:
        """Tell whether a group's item is written for so long that watermarks of old shards pile up in it.

        Parameters
        ----------
        group : tuple
            As in a `Contribution`.

        Returns
        -------
        bool
            False for the buckets of all tiers but the coarsest: most are over before one of their shards is.
        """
        return self._window is None or BY_LETTER[group[-2]].seconds > STREAM_RETENTION_HOURS * HOUR

    def _texts(self, group: GroupKey) -> tuple[str, ...]:
        if self._window is None:
            return group
        *fields, letter, bucket = group
        return (*fields, letter, BY_LETTER[letter].text(bucket))


def as_source(aggregate: Aggregate) -> Callable[[Image], Image | None]:
    """Make a function that shows an aggregate's item as a source: with its fields, and 0 for what was never counted.

    A group whose measures are all 0 is shown as none. So what is counted over groups depends on the items there are,
    not on those there once were.

    Parameters
    ----------
    aggregate : Aggregate
        The aggregate that others look at.

    Returns
    -------
    callable
        Takes the item's image, gives one with every field and measure as an attribute, or None.
    """
    parts = [(PK, aggregate.pk_template), (SK, aggregate.sk_template)]
    zeros: dict[str, Any] = dict.fromkeys(aggregate.attributes, _ZERO)

    def show(image: Image) -> Image | None:
        if all(image.get(attribute, _ZERO) == _ZERO for attribute in zeros):
            return None
        shown = {**zeros, **image}
        for name, template in parts:
            key = image[name]["S"]
            if not is_hashed(key):  # A hashed key's values are attributes already.
                shown.update((field, {"S": text}) for field, text in template.parse(key).items())
        return shown

    return show


def _part(text: str, spread: int) -> str:
    return str(zlib.crc32(text.encode()) % spread)
