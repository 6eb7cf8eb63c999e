"""Kinds of declarations: the parts they have, the reads that understand them, and the fields these take."""

from __future__ import annotations

import pytest

from dynamodb_counters import Distinct, Event, Extremes, Histogram, Percentiles
from dynamodb_counters._declarations.composites import Composite, group_fields, read_by, with_parts

_REQUEST = Event("request", key="id")


@pytest.mark.parametrize(
    ("declared", "read", "fields"),
    [
        (Percentiles("latency", _REQUEST, attribute="ms"), "distribution", ()),
        (Extremes("slowest", _REQUEST, by="route", attribute="ms"), "extremes", ("route",)),
    ],
)
def test_a_read_of_its_own_names_a_group_by_its_partition(
    declared: Composite, read: str, fields: tuple[str, ...]
) -> None:
    [counted] = declared._parts
    assert (read_by(counted), group_fields(counted)) == (read, fields)


def test_the_name_of_a_distinct_means_its_members_too() -> None:
    declared = Distinct("visitors", Event("view", key=("url", "time")), by="url", member="client")._parts
    assert with_parts(["visitors"], declared) == {"visitors", "visitors-members"}


def test_a_value_counts_in_all_bins_that_it_reaches() -> None:
    assert list(Histogram("n", at_least=[1, 5, 10])._bin_indexes(7)) == [0, 1]
