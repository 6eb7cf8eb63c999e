"""Bulk insert by PartiQL: 25 items per call, at one write unit and 1/25 round trip each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._declarations import Event
from dynamodb_counters._table import Table
from dynamodb_counters._writes.insert import REFUSED, failed, insert, outcome_of
from dynamodb_counters._writes.outcomes import ACCEPTED, Outcome, OutcomeStatus

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import BatchStatementRequestTypeDef

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
_STATEMENTS_PER_CALL: Final = 25
_MAX_STATEMENT_CHARACTERS: Final = 8192


def insert_many(table: Table, event: Event, items: Sequence[dict[str, Any]]) -> list[Outcome]:
    """Put typed items with distinct keys, each unless its key is taken."""
    if table.bulk == "put":
        return table.each(lambda item: insert(table, event, item), items)
    chunks = [items[start : start + _STATEMENTS_PER_CALL] for start in range(0, len(items), _STATEMENTS_PER_CALL)]
    return [
        outcome
        for outcomes in table.each(lambda chunk: _insert_chunk(table, event, chunk), chunks)
        for outcome in outcomes
    ]


def _insert_chunk(table: Table, event: Event, items: Sequence[dict[str, Any]]) -> list[Outcome]:
    statements = [_statement(table.name, item) for item in items]
    outcomes = [Outcome(OutcomeStatus.FAILED, "not tried")] * len(items)
    pending = []
    for index, statement in enumerate(statements):
        if len(statement["Statement"]) > _MAX_STATEMENT_CHARACTERS:
            outcomes[index] = insert(table, event, items[index])
        else:
            pending.append(index)
    for _ in table.tries() if pending else ():
        try:
            answers = table.client.batch_execute_statement(Statements=[statements[index] for index in pending])[
                "Responses"
            ]
        except (ClientError, BotoCoreError) as error:
            if not isinstance(error, ClientError) or error.response["Error"]["Code"] not in REFUSED:
                for index in pending:
                    outcomes[index] = failed(error)
                continue
            # One bad statement can make DynamoDB refuse the whole call: sent alone, each gets its own answer.
            for index in pending:
                outcomes[index] = insert(table, event, items[index])
            break
        for index, answer in zip(pending, answers, strict=True):
            outcomes[index] = outcome_of(None, answer["Error"]) if "Error" in answer else ACCEPTED
        pending = [index for index in pending if outcomes[index].is_failed]
        if not pending:
            break
    return outcomes


def _statement(table_name: str, item: dict[str, Any]) -> BatchStatementRequestTypeDef:
    names = ",".join("'" + name.replace("'", "''") + "':?" for name in item)
    return {"Statement": f'INSERT INTO "{table_name}" VALUE {{{names}}}', "Parameters": list(item.values())}
