"""How events are packed is checked when it is declared."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, InvalidArgumentError, Packed
from dynamodb_counters._declarations import flatten, require_consistent
from dynamodb_counters._declarations.codec import decode, encode


def _event(packed: Any, **changes: Any) -> Event:
    return Event("view", **{"pk": "URL#{url}", "sk": "T#{time}", **changes}, packed=packed)


def _views(source: Event, **changes: Any) -> Aggregate:
    return Aggregate("views", source, **{"pk": "SITE", "sk": "ALL", "measures": {"n": Count()}, **changes})


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("time", {"time": "_at"}),
        ("bucket", {"bucket": 600}),
        ("bucket", {"bucket": timedelta(seconds=1.5)}),
        ("bucket", {"bucket": timedelta(0)}),
        ("bucket", {"bucket": timedelta(days=2)}),
        ("parts", {"parts": 0}),
        ("parts", {"parts": 257}),
        ("partition_by", {"partition_by": 3}),
        ("tenant", {"tenant": 3}),
        ("chunk_bytes", {"chunk_bytes": 1023}),
        ("chunk_bytes", {"chunk_bytes": 400_000}),
        ("future_tolerance", {"future_tolerance": 15}),
    ],
)
def test_a_wrong_argument_is_refused(argument: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=f"invalid {argument}="):
        Packed(**{"time": "time", **arguments})


@pytest.mark.parametrize(
    ("argument", "packed"),
    [
        ("packed", "time"),
        ("time", Packed("at")),
        ("partition_by", Packed("time", partition_by="client")),
        ("tenant", Packed("time", tenant="client")),
    ],
)
def test_attributes_that_place_an_event_are_part_of_its_key(argument: str, packed: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"invalid {argument}="):
        _event(packed)


def test_a_packed_event_with_a_version_is_refused() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"^invalid version='n': expected None: a packed event has no version$"
    ):
        _event(Packed("time"), version="n")


@pytest.mark.parametrize("name", ["pk", "sk", "ttl"])
def test_a_condition_cannot_look_at_what_a_packed_event_lacks(name: str) -> None:
    where = Attr("size").gt(1) & Attr(name).exists()
    require_consistent(flatten([_views(_event(None), where=where)]))

    with pytest.raises(InvalidArgumentError, match=f"invalid where='{name}'"):
        require_consistent(flatten([_views(_event(Packed("time")), where=where)]))


def test_a_packed_event_takes_the_keys_of_its_chunks_and_leaves_its_own() -> None:
    beside = {"pk": "URL#{url}", "sk": "T#{time}"}
    require_consistent(flatten([_views(_event(Packed("time")), **beside)]))

    for pk, sk in (("PACK#view#{url}", "A#{time}"), ("PACK#{url}", "LAYOUT")):
        with pytest.raises(InvalidArgumentError, match="invalid sk="):
            require_consistent(flatten([_views(_event(Packed("time")), pk=pk, sk=sk)]))
    require_consistent(flatten([_views(_event(Packed("time")), pk="PACK#{url}#0#{time}", sk="A#{time}")]))
    with pytest.raises(InvalidArgumentError, match="invalid sk="):
        require_consistent(
            flatten([_views(_event(Packed("time", tenant="url")), pk="PACK#{url}#0#{time}", sk="A#{time}")])
        )


def test_a_layout_comes_back_from_the_environment() -> None:
    declared = (_views(_event(Packed("time", parts=4, partition_by="url", tenant="url"))),)

    assert repr(decode(encode(declared))) == repr(declared)
