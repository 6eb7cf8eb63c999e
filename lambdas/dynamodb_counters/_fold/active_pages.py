"""Pages of members that are active: their units of time, each shown with the gap to the one before. Pure.

A unit that lies less than the longest span before the end of a page's stretch counts in the next page, too. So each
page shows the gaps of its own units, and a change of it changes those of the units around: contribution of the new
image less that of the old one, as for any other item.
"""

from __future__ import annotations

from collections.abc import Iterator

from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.aggregates import GAP
from dynamodb_counters._fold.contributions import LATE, Contribute, Contribution
from dynamodb_counters._fold.page_layout import PageLayout
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import read_number
from dynamodb_counters._items.derived_fields import parts_of, tier_of


def looked_back_at(contribute: Contribute, members: Aggregate) -> Contribute:
    """The same contributions, and those to the next stretch that looks back at them."""
    stretch_field, unit_field = members.fields[-2:]
    units, longest, tier = int(parts_of(stretch_field)[1][:-1]), members._longest, tier_of(unit_field)
    assert tier is not None

    def also(contribution: Contribution) -> Iterator[Contribution]:
        layout, (*fields, stretch, unit), numbers = contribution
        following = tier.parse(stretch) + units
        yield contribution
        if tier.parse(unit) > following - longest:
            yield layout, (*fields, tier.text(following), unit), numbers

    def contribute_to_both(image: Image, created: float | None) -> tuple[Contribution, ...]:
        found = contribute(image, created)
        return LATE if found is LATE else tuple([each for one in found for each in also(one)])

    return contribute_to_both


class ActivePages(PageLayout):
    """The pages of members as those see them that count by gaps."""

    def __init__(self, members: Aggregate) -> None:
        super().__init__(members)
        self._stretch_field, self._unit_field = members.fields[-2:]
        [self._items] = members.measures

    def groups(self, image: Image, unlike: Image | None = None) -> list[Image]:
        """The units of a page's own stretch in which its member was active, each with its gap."""
        del unlike  # The gap of a unit may differ though the unit does not.
        assert self._unit is not None
        found = dict[int, Image]()
        for group in super().groups(image):
            if read_number(group, self._items) > 0:
                texts = self._sk.parse(group["sk"]["S"])
                found[self._unit.parse(texts[self._unit_field])] = group
                begin = self._unit.parse(texts[self._stretch_field])
        shown, before = list[Image](), None
        for number, group in sorted(found.items()):
            if number >= begin:
                gap = self._longest if before is None else min(number - before, self._longest)
                shown.append({**group, GAP: {"S": str(gap)}})
            before = number
        return shown
