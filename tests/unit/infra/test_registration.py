"""A table has one stream consumer, which knows everything declared anywhere in the app."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk.assertions import Annotations, Match
from aws_cdk.aws_sns import Topic

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator, WindowedCounter
from dynamodb_counters._declarations import Aggregate, Count, Distinct, Event, Window
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.support import (
    ROLLING,
    SITE,
    VIEW,
    VIEWS,
    build,
    declared,
    each,
    environment,
    new_app,
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


PLAYERS = Aggregate("players", VIEW, pk="CLIENT#{clientId}", sk="VIEWS", measures={"n": Count()})
ACTIVE = Aggregate("active", PLAYERS, pk="SITE", sk="ACTIVE", measures={"players": Count()})
# Names that do not compress.


def test_aggregate_over_another_may_be_declared_before_it(aggregator: StreamAggregator) -> None:
    aggregator.add_aggregate(ACTIVE)
    aggregator.add_aggregate(PLAYERS)
    assert declared(synthesized(aggregator)) == ["active", "players", "views"]


def test_declarations_of_several_aggregates_are_taken_apart(aggregator: StreamAggregator) -> None:
    aggregator.add_aggregate(Distinct("visitors", VIEW, pk="URL#{url}", sk="VISITORS", member="clientId"))
    assert declared(synthesized(aggregator)) == ["views", "visitors", "visitors-members"]


# With the id STATISTICS, a note has the key of a group of VIEWS, and its attribute `views` is that group's measure.
MEMO = Event("memo", pk="URL#{url}", sk="MEMO#{id}")


def test_declarations_over_an_event_are_known_where_it_comes_in(stack: Stack, counters: DedupCounterTable) -> None:
    build(EventIngest, stack, table=counters)
    other = Aggregate("notes", MEMO, pk="NOTES", sk="STATISTICS", measures={"notes": Count()})
    build(StreamAggregator, stack, table=counters, aggregates=[VIEWS, PLAYERS, ACTIVE, other])
    build(WindowedCounter, stack, table=counters)
    assert _counting(stack) == [(PLAYERS, ROLLING, VIEWS)] * 2


def test_events_that_nothing_counts_have_no_declarations_to_fit(stack: Stack, counters: DedupCounterTable) -> None:
    build(StreamAggregator, stack, table=counters)
    build(EventIngest, stack, table=counters, event=MEMO)
    assert _counting(stack) == []


def _counting(stack: Stack) -> list[Any]:
    functions = each(synthesized(stack), "AWS::Lambda::Function")
    variables = [function["Environment"]["Variables"] for function in functions]
    return [decode(known["AGGREGATES"]) for known in variables if "AGGREGATES" in known]


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
