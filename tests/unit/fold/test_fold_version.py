"""Contributions of an image may change only with `FOLD_VERSION`: another version must not finish a batch."""

from __future__ import annotations

import hashlib
from datetime import timedelta

from dynamodb_counters import Aggregate, Attr, Average, Count, Distinct, Event, Histogram, Items, Sum, Window
from dynamodb_counters._control.control import FOLD_VERSION
from dynamodb_counters._declarations import flatten
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters._items.conversions import format_number
from tests.unit.fold.streams import NOW, image, record
from tests.unit.fold.test_fold_malformed import IMAGES

_DIGESTS = {1: "dd87273364f709aa", 2: "0ec7e315fff2cad5"}
"""Digests of what each version makes of the images below. Never change one: add the next."""

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_URLS = Aggregate("urls", _VIEW, pk="URL#{url}", sk="S", measures={"n": Count(), "b": Sum("bytes", cap=5)})
_PLAN = Plan(
    flatten(
        (
            _URLS,
            Aggregate("seen", _URLS, pk="SEEN", sk="S", measures={"h": Histogram("n", at_least=[1, 3])}),
            Aggregate(
                "large", _VIEW, pk="LARGE#{at:day}", sk="S", measures={"a": Average("bytes")}, where=Attr("bytes").gt(1)
            ),
            Aggregate("sizes", _VIEW, pk="SIZES", sk="S", measures={"h": Histogram("bytes", bounds=[9])}),
            Aggregate("tags", _VIEW, pk="TAG#{tags[]}", sk="S", measures={"n": Count()}, max_groups=2),
            Aggregate("any", Items("foreign", where=Attr("url").exists()), pk="ANY", sk="S", measures={"n": Count()}),
            Distinct("visitors", _VIEW, pk="URL#{url}", sk="V", member="id"),
            *(
                Aggregate(f"places-{depth}", _VIEW, pk="PLACE", sk=sk, n=Count())
                for depth, sk in enumerate(("ALL", "URL#{url}", "URL#{url}#{id}"))
            ),
            Window("recent", _VIEW, pk="URL#{url}", time="at", retention=timedelta(days=2)),
            Window("ever", _VIEW, pk="EVER", time="at", measure=Sum("bytes"), on_expiry="subtract"),
        )
    )
)
_GOOD = image("view", url="/a", id="1", bytes=7, at=NOW) | {"tags": {"L": [{"S": text} for text in "xyx"]}}
_IMAGES = [
    _GOOD,
    {name: value for name, value in _GOOD.items() if name != "_type"},
    {**_GOOD, "tags": {"L": [{"S": text} for text in "xyz"]}},
    {**_GOOD, "at": {"N": str(NOW - 3 * 86_400)}},
    {**image("urls", n=3, b=5), "pk": {"S": "URL#%2Fa%23"}, "sk": {"S": "S"}},
    *IMAGES.values(),
]


def test_contributions_of_an_image_change_only_with_the_version() -> None:
    told: list[object] = []
    for index, one in enumerate(_IMAGES):
        for images in ((one, None), (None, one), (_GOOD, one)):
            folded = fold(_PLAN, changes_of([record(index + 1, *images)]))
            told += [
                (delta.ref, sorted((name, format_number(number)) for name, number in delta.measures.items()))
                for delta in folded.deltas
            ]
            told += [(held.entry_id, held.names) for held in folded.unfoldable]

    digest = hashlib.sha256(repr(told).encode()).hexdigest()[:16]
    assert digest == _DIGESTS[FOLD_VERSION], "raise FOLD_VERSION, and add the digest"
