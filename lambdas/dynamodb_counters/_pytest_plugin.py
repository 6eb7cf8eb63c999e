"""The pytest fixture ``counters_in_memory``, which pytest finds by itself once this package is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dynamodb_counters.testing import CountersInMemory


@pytest.fixture(name="counters_in_memory")
def counters_in_memory_fixture() -> Iterator[Callable[..., CountersInMemory]]:
    """Make counters in memory: call it with what `dynamodb_counters.testing.counters_in_memory` takes.

    Records that could not be counted fail the test at its end.
    """
    # Imported here: pytest loads this module in every session.
    from dynamodb_counters.testing import counters_in_memory  # noqa: PLC0415

    with ExitStack() as stack:

        def make(*declarations: Any, **settings: Any) -> CountersInMemory:
            return stack.enter_context(counters_in_memory(*declarations, **settings))

        yield make
