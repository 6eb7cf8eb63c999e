"""A stack, and what most tests have in it."""

from __future__ import annotations

import pytest
from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator
from tests.unit.infra.support import build, new_role, new_stack


@pytest.fixture
def stack() -> Stack:
    return new_stack()


@pytest.fixture
def counters(stack: Stack) -> DedupCounterTable:
    return build(DedupCounterTable, stack)


@pytest.fixture
def aggregator(stack: Stack, counters: DedupCounterTable) -> StreamAggregator:
    return build(StreamAggregator, stack, table=counters)


@pytest.fixture
def role(stack: Stack) -> iam.Role:
    return new_role(stack)
