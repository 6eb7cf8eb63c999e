"""A stack, and what most tests have in it."""

from __future__ import annotations

import pytest
from aws_cdk import Stack

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator
from tests.unit.infra.support import build, new_stack


@pytest.fixture
def stack() -> Stack:
    return new_stack()


@pytest.fixture
def counters(stack: Stack) -> DedupCounterTable:
    return build(DedupCounterTable, stack)


@pytest.fixture
def aggregator(stack: Stack, counters: DedupCounterTable) -> StreamAggregator:
    return build(StreamAggregator, stack, table=counters)
