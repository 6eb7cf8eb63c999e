"""A table has one stream consumer, which knows everything declared anywhere in the app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk.assertions import Annotations, Match
from aws_cdk.aws_sns import Topic

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator, WindowedCounter
from dynamodb_counters import Attr
from dynamodb_counters._declarations import Aggregate, Count, Distinct, Event, Window
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.support import (
    ROLLING,
    SITE,
    TOP,
    VIEW,
    VIEWS,
    build,
    declared,
    each,
    environment,
    new_app,
    new_role,
    new_stack,
    synthesized,
)


def test_window_of_another_stack_reaches_the_aggregator_whichever_comes_first() -> None:
    app = new_app()
    before, home, after = (Stack(app, name) for name in ("Before", "Home", "After"))
    for stack in (before, after):
        Topic(stack, "Something")  # CloudFormation refuses an empty stack
    counters = DedupCounterTable(home, "Counters")
    WindowedCounter(before, "Rolling", table=counters, window=ROLLING)
    aggregator = StreamAggregator(home, "Aggregator", table=counters, aggregates=[VIEWS])
    late = Window("late", VIEW, pk="CLIENT#{clientId}", time="time")
    WindowedCounter(after, "Late", table=counters, window=late)
    aggregator.add_aggregate(SITE)
    assert declared(synthesized(home)) == ["late", "rolling", "site", "views"]


def test_the_aggregator_knows_what_attributes_of_its_events_must_be() -> None:
    stack = new_stack()
    sale = replace(VIEWS, source=replace(VIEW, attributes={"url": str, "time": datetime, "clientId": str}))
    counters = DedupCounterTable(stack, "Counters")
    StreamAggregator(stack, "Aggregator", table=counters, aggregates=[sale])
    assert decode(environment(synthesized(stack))["DECLARATIONS"]) == (sale,)


def test_aggregator_may_stand_in_another_stack_than_the_table() -> None:
    app = new_app()
    counters = DedupCounterTable(Stack(app, "Data"), "Counters")
    compute = Stack(app, "Compute")
    StreamAggregator(compute, "Aggregator", table=counters, aggregates=[VIEWS])
    synthesized(compute).resource_count_is("AWS::Lambda::EventSourceMapping", 1)


def test_root_may_be_an_implicit_app() -> None:
    stack = Stack()
    counters = DedupCounterTable(stack, "Counters")
    WindowedCounter(stack, "Rolling", table=counters, window=ROLLING)
    StreamAggregator(stack, "Aggregator", table=counters)
    with pytest.raises(InvalidArgumentError, match="the one at 'Default/Aggregator'"):
        StreamAggregator(stack, "Second", table=counters)


@pytest.mark.usefixtures("aggregator")
def test_second_aggregator_is_refused_with_the_way_out(stack: Stack, counters: DedupCounterTable) -> None:
    with pytest.raises(InvalidArgumentError, match=r"one StreamAggregator per table.*'Test/Aggregator'.*add_aggregate"):
        StreamAggregator(stack, "Second", table=counters, aggregates=[SITE])


@pytest.mark.usefixtures("aggregator")
def test_a_second_aggregator_of_a_class_of_its_own_is_refused(stack: Stack, counters: DedupCounterTable) -> None:
    class Own(StreamAggregator):
        pass

    with pytest.raises(InvalidArgumentError, match=r"one StreamAggregator per table.*'Test/Aggregator'"):
        Own(stack, "Second", table=counters)


def test_window_that_nothing_counts_is_an_error_at_synth(stack: Stack) -> None:
    build(WindowedCounter, stack)
    with pytest.raises(RuntimeError, match=r"window 'rolling' is never counted.*create a StreamAggregator"):
        synthesized(stack)


def test_contradicting_declarations_are_refused_where_they_are_made(
    counters: DedupCounterTable, aggregator: StreamAggregator
) -> None:
    same_name = Window("views", VIEW, pk="CLIENT#{clientId}", time="time")
    with pytest.raises(InvalidArgumentError, match=r"^invalid name='views'"):
        WindowedCounter(aggregator, "Rolling", table=counters, window=same_name)
    other_event = Event("view", pk="ELSE#{url}", sk="T#{time}", retention=timedelta(days=1))
    with pytest.raises(InvalidArgumentError, match=r"^invalid name='view'"):
        aggregator.add_aggregate(Aggregate("else", other_event, pk="E#{url}", sk="S", measures={"n": Count()}))
    assert declared(synthesized(aggregator)) == ["views"]


PLAYERS = Aggregate("players", VIEW, pk="CLIENT#{clientId}", sk="VIEWS", measures={"n": Count()})
ACTIVE = Aggregate("active", PLAYERS, pk="SITE", sk="ACTIVE", measures={"players": Count()})
# Names that do not compress.
NAMES = [f"a{sha256(str(index).encode()).hexdigest()[:16]}" for index in range(300)]
MANY = [Aggregate(name, VIEW, pk=f"{name}#{{url}}", sk="S", measures={"n": Count()}) for name in NAMES]


@pytest.mark.parametrize(
    ("aggregates", "message"),
    [
        ([], "nothing is counted"),
        ([ACTIVE], "invalid source='players': expected an aggregate that is declared with 'active'"),
        ([TOP], "the table has no 'ranking' index, which 'top' needs"),
        (MANY, r"takes \d+ bytes as JSON, \d+ of them for DECLARATIONS, but Lambda allows 4096: declare less"),
    ],
    ids=["nothing", "source-missing", "index-missing", "too-many"],
)
def test_uncountable_aggregates_are_refused_at_synth(aggregates: list[Aggregate], message: str, stack: Stack) -> None:
    build(StreamAggregator, stack, aggregates=aggregates)
    with pytest.raises(RuntimeError, match=message):
        synthesized(stack)


def test_aggregate_over_another_may_be_declared_before_it(aggregator: StreamAggregator) -> None:
    aggregator.add_aggregate(ACTIVE)
    aggregator.add_aggregate(PLAYERS)
    assert declared(synthesized(aggregator)) == ["active", "players", "views"]


def test_declarations_of_several_aggregates_are_taken_apart(aggregator: StreamAggregator) -> None:
    aggregator.add_aggregate(Distinct("visitors", VIEW, pk="URL#{url}", sk="VISITORS", member="clientId"))
    assert declared(synthesized(aggregator)) == ["views", "visitors", "visitors-members"]


# With the id STATISTICS, a note has the key of a group of VIEWS, and its attribute `views` is that group's measure.
NOTE = Event("note", pk="URL#{url}", sk="{id}")
MEMO = Event("memo", pk="URL#{url}", sk="MEMO#{id}")
ENTRANCES: dict[str, Callable[[Stack, DedupCounterTable, Event], object]] = {
    "ingest": lambda stack, counters, event: build(
        EventIngest, stack, table=counters, event=event, construct_id=event.name
    ),
    "listed": lambda stack, counters, event: build(
        CounterApi, stack, table=counters, shown=[SITE], events=[event], construct_id=event.name
    ),
    "grant_accept": lambda stack, counters, event: counters.grant_accept(new_role(stack, event.name), event),
    "grant_record_once": lambda stack, counters, event: counters.grant_record_once(new_role(stack, event.name), event),
}


@pytest.mark.usefixtures("aggregator")
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_an_event_that_nothing_counts_cannot_be_a_count(
    entrance: str, stack: Stack, counters: DedupCounterTable
) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^invalid pk=.*: expected keys that cannot match .* 'views'"):
        ENTRANCES[entrance](stack, counters, NOTE)
    ENTRANCES[entrance](stack, counters, MEMO)


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_a_count_declared_after_an_event_that_it_could_be_is_refused(
    entrance: str, stack: Stack, counters: DedupCounterTable
) -> None:
    ENTRANCES[entrance](stack, counters, NOTE)
    with pytest.raises(InvalidArgumentError, match=r"^invalid pk=.* cannot match items of 'views'"):
        build(StreamAggregator, stack, table=counters)


def test_events_of_a_table_are_checked_against_each_other(stack: Stack) -> None:
    letter = Event("letter", pk="URL#{page}", sk="MEMO#{letter}")
    with pytest.raises(InvalidArgumentError, match=r"^invalid pk=.*: .* cannot match items of 'letter'"):
        DedupCounterTable(stack, "Counters", events=[MEMO, letter])
    again = Event("memo", pk="MEMO#{url}", sk="{id}")
    with pytest.raises(InvalidArgumentError, match=r"^invalid name='memo': expected one declaration per name"):
        DedupCounterTable(stack, "Notes", events=[MEMO]).grant_accept(new_role(stack), again)


def test_declarations_over_an_event_are_known_where_it_comes_in(stack: Stack, counters: DedupCounterTable) -> None:
    build(EventIngest, stack, table=counters)
    other = Aggregate("notes", MEMO, pk="NOTES", sk="STATISTICS", measures={"notes": Count()})
    build(StreamAggregator, stack, table=counters, aggregates=[VIEWS, PLAYERS, ACTIVE, other])
    build(WindowedCounter, stack, table=counters)
    assert _counting(stack) == [(PLAYERS, ROLLING, VIEWS)] * 2


def test_declarations_that_count_an_event_have_to_fit_into_the_environment_of_an_ingest(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters")
    build(EventIngest, stack, table=counters)
    build(StreamAggregator, stack, table=counters, aggregates=MANY)
    with pytest.raises(
        RuntimeError, match=r"takes \d+ bytes as JSON, \d+ of them for AGGREGATES, but Lambda allows 4096"
    ):
        synthesized(stack)


def test_events_that_nothing_counts_have_no_declarations_to_fit(stack: Stack, counters: DedupCounterTable) -> None:
    build(StreamAggregator, stack, table=counters)
    build(EventIngest, stack, table=counters, event=MEMO)
    assert _counting(stack) == []


def _counting(stack: Stack) -> list[Any]:
    functions = each(synthesized(stack), "AWS::Lambda::Function")
    variables = [function["Environment"]["Variables"] for function in functions]
    return [decode(known["AGGREGATES"]) for known in variables if "AGGREGATES" in known]


@pytest.mark.parametrize("comes_first", ["api", "aggregator"])
def test_an_api_shows_no_other_definition_of_what_is_counted(
    comes_first: str, stack: Stack, counters: DedupCounterTable
) -> None:
    other = replace(VIEWS, where=Attr("url").ne("/"))
    makes: dict[str, Callable[[], object]] = {
        "api": lambda: build(CounterApi, stack, table=counters, shown=[other]),
        "aggregator": lambda: build(StreamAggregator, stack, table=counters),
    }
    makes.pop(comes_first)()
    [makes_other] = makes.values()
    with pytest.raises(InvalidArgumentError, match=r"^invalid name='views': expected one declaration per name"):
        makes_other()


def test_two_apis_show_one_definition_of_a_name(stack: Stack, counters: DedupCounterTable) -> None:
    build(CounterApi, stack, table=counters)
    build(CounterApi, stack, table=counters, construct_id="Again")
    with pytest.raises(InvalidArgumentError, match=r"^invalid name='views': expected one declaration per name"):
        build(CounterApi, stack, table=counters, shown=[replace(VIEWS, sk="OTHER")], construct_id="Other")


def test_an_event_comes_in_as_it_is_counted(stack: Stack, counters: DedupCounterTable) -> None:
    build(EventIngest, stack, table=counters, event=replace(VIEW, retention=timedelta(days=1)))
    with pytest.raises(InvalidArgumentError, match=r"^invalid name='view': expected one declaration per name"):
        build(StreamAggregator, stack, table=counters)


def test_declarations_that_an_api_shows_uncounted_are_a_warning(stack: Stack, counters: DedupCounterTable) -> None:
    # Any construct may come first: synth warns once everything is declared.
    build(CounterApi, stack, table=counters, shown=[VIEWS, ROLLING, SITE, PLAYERS])
    build(CounterApi, stack, table=counters, shown=[VIEWS, ROLLING], construct_id="Counted")
    incremented = build(CounterApi, stack, table=counters, shown=[SITE], construct_id="Incremented")
    build(EventIngest, stack, table=counters)
    build(EventIngest, stack, table=counters, event=MEMO, construct_id="Notes")
    build(WindowedCounter, stack, table=counters)
    build(StreamAggregator, stack, table=counters)
    id_ = "Annotation::dynamodb-counters:nothingCounts"
    Validations.of(incremented).acknowledge(Acknowledgment(id=id_, reason="It is incremented."))

    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("^Nothing in this app counts"))

    assert {message.id: str(message.entry.data).partition(":")[0] for message in found} == {
        "/Test/Api": "Nothing in this app counts 'players', 'site', which this API shows",
        "/Test/Notes": "Nothing in this app counts 'memo', which this ingest takes",
    }


def test_declarations_that_are_shown_match_no_item_of_another(stack: Stack, counters: DedupCounterTable) -> None:
    build(StreamAggregator, stack, table=counters)
    same_item = replace(VIEWS, name="visits")
    with pytest.raises(InvalidArgumentError, match=r"^invalid pk=.*: expected keys that cannot match"):
        build(CounterApi, stack, table=counters, shown=[same_item])
