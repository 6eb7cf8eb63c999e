"""Multi-Region strong consistency: a table that refuses every transaction."""

from __future__ import annotations

from typing import Any, Final

from simulation.aws.rule import Rule
from simulation.memory.client_errors import failure

TRANSACTIONS_ARE_REFUSED: Final = Rule(
    "a table of multi-Region strong consistency refuses transactions",
    "Transaction operations are not supported and return an error (in our words).",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html",
    switch="simulation.aws.strong_consistency.StronglyConsistent(consistency)",
    guard="a table that refuses transactions is counted",
)


class StronglyConsistent:
    """A client of such a table."""

    def __init__(self, client: Any, consistency: str = "STRONG") -> None:
        self._client, self._consistency = client, consistency

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def describe_table(self, **request: Any) -> dict[str, Any]:
        described = self._client.describe_table(**request)["Table"]
        return {"Table": {**described, "MultiRegionConsistency": self._consistency}}

    def transact_write_items(self, **request: Any) -> Any:
        if self._consistency == "STRONG":
            raise failure("TransactWriteItems", "ValidationException", "not supported")
        return self._client.transact_write_items(**request)
