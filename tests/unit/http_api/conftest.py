"""The handlers over an empty table, and over one that holds counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from counters_lambda.http_api.resources import CountResources
from tests.unit.http_api.handlers import CLIENTS, DECLARATIONS, HIT, VIEW, Queue, environment, resources_of, views
from tests.unit.http_api.handlers import counted as counted_table


@pytest.fixture(scope="module")
def queue() -> Iterator[Queue]:
    """Configure the handlers for a test module."""
    with pytest.MonkeyPatch.context() as patch:
        yield environment(patch)


@pytest.fixture(scope="module")
def counted() -> CountResources:
    """Return the resources over counts of every kind."""
    return resources_of(counted_table((*DECLARATIONS, CLIENTS._parts[0]), (VIEW, views()), (HIT, views())).table)
