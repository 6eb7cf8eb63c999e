"""PartiQL's limits: statements of a batch, and characters of a statement."""

from __future__ import annotations

from typing import Final

from simulation.aws.rule import Rule

BATCHES_ARE_SHORT: Final = Rule(
    "a PartiQL batch has 25 statements at most",
    "BatchExecuteStatement and BatchWriteItem can perform no more than 25 statements per batch.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.multiplestatements.batching.html",
    switch="simulation.metered_table.Metered.has_limits",
    guard="more than 25 statements go into a call",
)

STATEMENTS_ARE_SHORT: Final = Rule(
    "a PartiQL statement has 8,192 characters at most",
    "Length Constraints: Minimum length of 1. Maximum length of 8192.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementRequest.html",
    switch="simulation.metered_table.Metered.has_limits",
    guard="a long statement goes into a batch",
)
