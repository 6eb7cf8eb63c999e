"""AWS Lambda Powertools' idempotency around an increment, not atomic with it; its own code, not ours."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyAlreadyInProgressError

from benchmarks.designs.base import Design, increment
from demo.examples.blog.traffic import View

_MARKERS = "idempotency"


class Powertools(Design):
    name = "powertools_idempotency"
    title = "Powertools idempotency + ADD"
    source = "https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/"

    def create(self) -> None:
        super().create()
        self.database.create(_MARKERS, "id")
        self._count = idempotent_counter(self.client)

    def take(self, view: View) -> None:
        for _ in range(100):
            try:
                self._count(view=view._asdict())
                break
            except IdempotencyAlreadyInProgressError:
                # An invocation died: its lock ends with the time that invocation had left. The queue tries later.
                time.sleep(0.002)


def idempotent_counter(client: Any) -> Callable[..., Any]:
    """The increment, guarded as Powertools' documentation shows for records of a batch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store = DynamoDBPersistenceLayer(table_name=_MARKERS, boto3_client=client)
        config = IdempotencyConfig(expires_after_seconds=7 * 86_400)
        # A millisecond left to run: locks of invocations that died end before their events come again.
        config.register_lambda_context(SimpleNamespace(get_remaining_time_in_millis=lambda: 1))  # type: ignore[arg-type]

        @idempotent_function(data_keyword_argument="view", persistence_store=store, config=config)  # type: ignore[untyped-decorator]
        def count(view: dict[str, Any]) -> None:
            client.update_item(**increment(view["url"]))

    return count  # type: ignore[no-any-return]
