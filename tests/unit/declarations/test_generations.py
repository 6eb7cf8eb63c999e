"""Statuses are ordinary declarations that never meet; a deployment never touches what readers use unasked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import (
    Aggregate,
    Attr,
    Count,
    Counter,
    Distinct,
    Event,
    InvalidArgumentError,
    Items,
    Ranking,
    Sum,
    Window,
)
from dynamodb_counters._changes.effective import Merged, Past, merged
from dynamodb_counters._declarations import Declaration, flatten, require_consistent
from dynamodb_counters._declarations.codec import decode, encode
from dynamodb_counters._declarations.groups import (
    base_name,
    definition,
    generation,
    generation_number,
    is_replaced,
)
from dynamodb_counters._fold.plan import Plan

_VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")
_BIG: Final = Attr("bytes").gt(100)


def _views(**changes: Any) -> Aggregate:
    arguments: dict[str, Any] = {"pk": "URL#{url}", "sk": "STATISTICS", "measures": {"views": Count()}, **changes}
    return Aggregate("views", arguments.pop("source", _VIEW), **arguments)


def _bins(source: Aggregate, **changes: Any) -> Aggregate:
    arguments: dict[str, Any] = {"pk": "BINS", "sk": "ALL", "measures": {"urls": Count()}, **changes}
    return Aggregate("bins", source, **arguments)


def _kinds(found: Merged) -> dict[str, str]:
    return {name: change.kind for name, change in found.changes.items()}


def _names(found: Merged) -> list[str]:
    return [each.name for each in found.effective]


_RANKED = _views(ranking=Ranking(measure="views", leaderboard="TOP#{url}"))
_WINDOW = Window("recent", _VIEW, pk="URL#{url}", time="time")


def test_a_generation_has_name_keys_and_leaderboard_of_its_own() -> None:
    third = generation(replace(_RANKED, on_change="keep"), 3)

    assert (third.name, base_name(third.name), generation_number(third.name)) == ("views~3", "views", 3)
    assert third._sk_template.render({}) == "STATISTICS##~3"
    assert third.ranking is not None
    assert third.ranking.leaderboard == "TOP#{url}##~3"
    assert third.on_change == "backfill"
    assert generation(_WINDOW, 3)._sk_template.text.startswith("WINDOW#recent~3#")


@pytest.mark.parametrize("declared", [_RANKED, _WINDOW, _views(write_shards=4), _bins(_views())])
def test_a_generation_leads_back_to_its_definition_and_travels_as_text(declared: Declaration) -> None:
    third = generation(declared, 3)

    assert generation(third, 0) == generation(generation(third, 7), 0) == definition(declared)
    assert decode(encode((third,))) == (third,)
    assert "on_change" not in encode((definition(declared),))
    assert decode(encode((replace(declared, on_change="fail"),))) == (replace(declared, on_change="fail"),)


def test_composed_declarations_pass_on_change_on() -> None:
    composed = Distinct("d", _VIEW, pk="A#{url}", sk="D", member="clientId", on_change="fail")

    assert {part.on_change for part in flatten([composed])} == {"fail"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: flatten([generation(_views(), 3)]),
        lambda: flatten([_bins(generation(_views(), 3))]),
        lambda: flatten([_views(source=Items("path~1", where=_BIG))]),
        lambda: Event("view~3", pk="A", sk="B"),
        lambda: Distinct("d~3", _VIEW, pk="D", sk="D", member="clientId"),
        lambda: replace(_views(), name="views~0"),
        lambda: replace(_views(), name="views~1234567"),
        lambda: replace(_views(), name="views~1\n"),
        lambda: replace(_views(), name="quarantine~1"),
        lambda: replace(_views(), name="views~1~2"),
    ],
)
def test_users_declare_no_generations(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgumentError, match="invalid name="):
        make()


_LITERALS = st.sampled_from(["A", "B", "~", "~1", "#", "##~1", "#~1", "A##~"])
_PARTS = st.lists(st.one_of(_LITERALS, st.sampled_from(["{x}", "{y}"])), min_size=1, max_size=4, unique=True)
_TEMPLATES = _PARTS.map("#".join)


@given(st.lists(_TEMPLATES, min_size=1, max_size=3), st.integers(1, 4), st.integers(1, 9))
def test_generations_of_what_is_consistent_never_meet(keys: list[str], shards: int, number: int) -> None:
    declared = tuple(
        Aggregate(f"a{index}", _VIEW, pk="P#{p}", sk=sk, measures={"n": Count()}, write_shards=shards)
        for index, sk in enumerate(keys)
    )
    try:
        require_consistent(declared)
    except InvalidArgumentError:
        return
    odd = [each for each in declared if "##~" in each.sk]
    for one, two in combinations([each for each in declared if each not in odd], 2):
        require_consistent((one, two, generation(one, number), generation(two, number + 1)))
    for each in declared:
        require_consistent((each, generation(each, number), generation(each, number + 1)))


def test_open_generations_stay_with_their_definition_and_go_with_another() -> None:
    old, new, other = _views(), _views(where=_BIG), _views(where=~_BIG)
    filling = (old, _bins(old), generation(new, 1), generation(_bins(new), 1, generation(new, 1)))

    same = merged((new, _bins(new)), filling)
    assert _kinds(same) == {"views": "filling", "bins": "unchanged"}
    assert same.effective == tuple(sorted(filling, key=lambda each: each.name))
    assert _names(merged((other, _bins(other)), filling)) == ["bins", "views"]
    assert _names(merged((old, _bins(old)), filling)) == ["bins", "views"]
    # Once readers use the new one, the old one goes, and what looks at it is over the new one.
    switched = merged((new, _bins(new)), filling, {"views": 1, "bins": 1})
    assert switched.effective == (generation(_bins(new), 1, generation(new, 1)), generation(new, 1))


def _bins_of_events() -> Aggregate:
    return Aggregate("bins", _VIEW, pk="BINS", sk="ALL", measures={"urls": Count()})


def test_a_generation_whose_source_is_gone_decides_nothing() -> None:
    old, new = _views(), _views(where=_BIG)
    more = {"urls": Count(), "views": Sum("views")}
    filling = (old, _bins(old), generation(new, 1), generation(_bins(new, measures=more), 1, generation(new, 1)))

    found = merged((old, _bins(old, measures=more, on_change="keep")), filling)

    assert _kinds(found) == {"bins": "keep", "views": "unchanged"}
    assert found.effective == (_bins(old, measures=more), old)


def test_waiting_declarations_see_events_as_they_are_declared_now() -> None:
    later = replace(_VIEW, version="at")
    site = Aggregate("site", later, pk="SITE", sk="ALL", measures={"n": Count()})

    found = merged((_views(source=later, where=_BIG), site), (_views(), replace(site, source=_VIEW)))

    assert _kinds(found) == {"site": "unchanged", "views": "waits"}
    assert found.effective == (site, _views(source=later))


def test_two_that_change_places_do_not_count_each_other() -> None:
    below = _bins_of_events()
    above = Aggregate("views", below, pk="URL", sk="ALL", measures={"n": Count()}, on_change="keep")
    old = _views()

    found = merged((below, above), (old, _bins(old)))

    assert _kinds(found) == {"bins": "waits", "views": "waits"}
    assert found.effective == (_bins(old), old)


def test_items_with_another_condition_are_other_items_of_the_same_form() -> None:
    small, big = (Items("path", pk="PLAYER#{player}", where=where) for where in (~_BIG, _BIG))
    old, new = _views(source=small), _views(source=big)
    added = Aggregate("added", big, pk="ADDED", sk="ALL", measures={"n": Count()})

    found = merged((new, added), (old,))

    assert _kinds(found) == {"views": "waits", "added": "new"}
    Plan(found.effective)
    assert {each.name: each.source for each in found.effective} == {
        "added": big,
        "views": replace(small, name="path~1"),
    }
    assert merged((old,), (_views(source=replace(small, name="renamed")),)).effective == (old,)


def test_a_counter_goes_on_in_place_with_its_keys_and_stays_one() -> None:
    counter, moved = Counter("views", by="url"), Counter("views", pk="MOVED#{url}", sk="N")
    changed = replace(counter, measures={"n": Count()})
    found = merged((changed,), (counter,))
    assert (_kinds(found), found.effective) == ({"views": "keep"}, (changed,))
    for before, after in ((counter, moved), (counter, _views()), (_views(), counter)):
        assert "a Counter keeps its keys, and stays one" in merged((after,), (before,)).refused["views"]


def test_true_is_not_one() -> None:
    found = merged((_views(where=Attr("ok").eq(value=True)),), (_views(where=Attr("ok").eq(1)),))

    assert _kinds(found) == {"views": "waits"}


_SOURCES = st.sampled_from([_VIEW, Items("path", where=_BIG), Items("path", where=~_BIG)])
_POLICIES: st.SearchStrategy[Any] = st.sampled_from(["backfill", "keep", "fail"])
_WHERES = st.sampled_from([None, _BIG, Attr("bytes").lt(5)])


@st.composite
def _declared(draw: st.DrawFn) -> tuple[Declaration, ...]:
    path = draw(_SOURCES)
    found: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from("abcd"), unique=True)):
        below = [*found.values(), path]
        source = draw(st.sampled_from(below))
        aggregated = isinstance(source, Aggregate)
        if draw(st.integers(0, 4)) == 4:
            measures = draw(st.sampled_from([{"n": Count()}, {"m": Count(), "n": Count()}]))
            found[name] = Counter(name, pk=draw(st.sampled_from(["P", "Q"])), sk=f"S{name}", measures=measures)
            continue
        found[name] = Aggregate(
            name,
            source,
            pk=draw(st.sampled_from(["P", "Q"])),
            sk=draw(st.sampled_from([f"S{name}", "Sx"])),
            measures=draw(st.sampled_from([{"n": Count()}, {"m": Count(), "n": Count()}])),
            where=None if aggregated else draw(_WHERES),
            on_change=draw(_POLICIES),
        )
        if aggregated and draw(st.booleans()):
            found[name] = replace(found[name], measures={"n": Sum("n")})
    declared = tuple(found.values())
    try:
        require_consistent(declared)
    except InvalidArgumentError:
        return declared[:1] if declared and not isinstance(declared[0].source, Aggregate) else ()
    return declared


def _opened(folded: tuple[Declaration, ...], declared: tuple[Declaration, ...], number: int) -> tuple[Declaration, ...]:
    """Declarations that are folded once a backfill of everything is open."""
    found: dict[str, Any] = {}
    for each in declared:
        source = found.get(each.source.name)
        if isinstance(each, Counter):
            continue
        found[each.name] = generation(each, number, source)
    try:
        require_consistent((*folded, *found.values()))
    except InvalidArgumentError:
        return folded
    return (*folded, *found.values())


@st.composite
def _folded(draw: st.DrawFn) -> tuple[tuple[Declaration, ...], Mapping[str, int]]:
    """Declarations that deployments and backfills may have left, and those that readers use."""
    folded: tuple[Declaration, ...] = ()
    reads: dict[str, int] = {}
    for number in range(1, draw(st.integers(1, 4))):
        declared = draw(_declared())
        found = merged(declared, folded, reads)
        if found.refused:
            continue
        folded, reads = found.effective, dict(found.reads)
        if draw(st.booleans()):
            folded = _opened(folded, declared, number)
            if draw(st.booleans()):
                reads |= {base_name(each.name): number for each in folded if generation_number(each.name) == number}
    return folded, reads


@given(_declared(), _folded())
def test_a_merge_is_consistent_and_done_once(
    declared: tuple[Declaration, ...], before: tuple[tuple[Declaration, ...], Mapping[str, int]]
) -> None:
    folded, reads = before
    require_consistent(folded)

    found = merged(declared, folded, reads)

    assert merged(declared[::-1], folded[::-1], reads) == found
    require_consistent(found.effective)
    if found.refused:
        assert sorted(_names(found)) == sorted(each.name for each in folded)
        return
    past = Past((folded,))
    again = merged(declared, found.effective, found.reads, past)
    assert again.effective == found.effective
    assert again.reads == found.reads
    assert merged(declared, decode(encode(found.effective)), found.reads, past) == again
    for each in declared:
        change = found.changes[each.name]
        if change.kind in ("waits", "unchanged", "adjusted") and change.before is not None:
            read = {folded_one.name: folded_one for folded_one in found.effective}
            assert any(base_name(name) == each.name for name in read)


@pytest.mark.parametrize(
    ("folded", "replaced"), [({"views~3"}, True), ({"views", "views~3"}, False), ({"likes"}, False)]
)
def test_a_name_is_replaced_where_only_a_later_generation_is_folded(folded: set[str], *, replaced: bool) -> None:
    assert is_replaced("views", folded) is replaced
    assert (base_name("views"), generation_number("views")) == ("views", 0)
