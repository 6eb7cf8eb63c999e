"""A template's functions in an emulator: its tables, queues and buckets exist, under the names of their logical ids."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module, reload
from typing import Any, Final

import boto3
import pytest

from dynamodb_counters._items.table_schema import LEADERBOARD, RANKING_INDEX, SCORE
from dynamodb_counters._table import Table
from simulation.engines.tables import create_table
from simulation.handler_process import LAMBDA_CONTEXT
from tests.gate.calls import Permission, noted
from tests.gate.jobs import Invoke
from tests.gate.roles import kind
from tests.gate.template import Resource, Template, variables

_ACCOUNT: Final = "000000000000"
_REGION: Final = "us-east-1"
_OF_AWS: Final = {"AWS::Region": _REGION, "AWS::AccountId": _ACCOUNT, "AWS::Partition": "aws"}
_ARNS: Final = {
    "AWS::DynamoDB::GlobalTable": f"arn:aws:dynamodb:{_REGION}:{_ACCOUNT}:table/{{}}",
    "AWS::SQS::Queue": f"arn:aws:sqs:{_REGION}:{_ACCOUNT}:{{}}",
    "AWS::S3::Bucket": "arn:aws:s3:::{}",
}


class Deployed:
    """Resources that the functions of a template need, created at an endpoint; `suffix` keeps them apart."""

    def __init__(self, template: Template, endpoint_url: str, suffix: str) -> None:
        self._template, self._url, self._suffix = template, endpoint_url, suffix
        dynamodb = boto3.client("dynamodb", endpoint_url=endpoint_url)
        sqs, s3 = boto3.client("sqs", endpoint_url=endpoint_url), boto3.client("s3", endpoint_url=endpoint_url)
        for one in template.each("DynamoDB::GlobalTable"):
            create_table(dynamodb, self.name(one))
            if "GlobalSecondaryIndexes" in one.properties:
                _add_index(dynamodb, self.name(one))
        for one in template.each("SQS::Queue"):
            sqs.create_queue(QueueName=self.name(one))
        for one in template.each("S3::Bucket"):
            s3.create_bucket(Bucket=self.name(one))

    def name(self, resource: Resource) -> str:
        """The name under which a resource of the template exists."""
        return re.sub(r"[^a-z0-9]", "", resource.id.lower()) + self._suffix

    def needs(self, calls: set[Permission]) -> set[Permission]:
        """Permissions that calls need, of the template's resources instead of the emulator's."""
        names = {self.name(resource): kind(self._template, resource) for resource in self._template.resources.values()}
        split = [(action, *resource.partition("/")) for action, resource in calls]
        return {(action, names.get(name, name) + slash + rest) for action, name, slash, rest in split}

    @contextmanager
    def running(self, function: Resource, **changed: str) -> Iterator[tuple[Invoke, set[Permission]]]:
        """Run a function's handler in its environment; note what its calls need."""
        module, _, name = str(function["Handler"]).rpartition(".")
        with pytest.MonkeyPatch.context() as patch:
            environment = {one: self._physical(value) for one, value in variables(function).items()} | changed
            lambdas = {"AWS_LAMBDA_FUNCTION_NAME": function.id, "AWS_ENDPOINT_URL": self._url, "AWS_REGION": _REGION}
            for variable, value in (environment | lambdas).items():
                patch.setenv(variable, value)
            # Pauses between tries are none of our business.
            defaults = tuple(_shortly if one is time.sleep else one for one in Table.__init__.__defaults__ or ())
            patch.setattr(Table.__init__, "__defaults__", defaults)
            # Powertools reads its variables when a module is loaded.
            handler = getattr(reload(import_module(module)), name)
            with noted() as calls:

                def invoke(event: dict[str, Any], *, throttled: bool = False) -> dict[str, Any]:
                    calls.throttled = throttled
                    answer: dict[str, Any] = handler(event, LAMBDA_CONTEXT)
                    return answer

                yield invoke, calls.permissions

    def _physical(self, value: Any) -> str:
        if not isinstance(value, dict):
            return str(value)
        if "Fn::Join" in value:
            separator, parts = value["Fn::Join"]
            return str(separator).join(self._physical(part) for part in parts)
        if "Ref" in value and value["Ref"] not in self._template.resources:
            return _OF_AWS.get(value["Ref"], "unknown")
        found = self._template.of(value, "DynamoDB::GlobalTable", "SQS::Queue", "S3::Bucket")
        if found is None:
            return "unknown"
        name = self.name(found)
        if "Fn::GetAtt" in value and value["Fn::GetAtt"][1].endswith("Arn"):
            return _ARNS[found.type].format(name)
        # The reference of a queue is its URL.
        return f"{self._url}/{_ACCOUNT}/{name}" if found.type == "AWS::SQS::Queue" and "Ref" in value else name


def _shortly(seconds: float) -> None:
    time.sleep(seconds / 50)


def _add_index(dynamodb: Any, table: str) -> None:
    partition, sort = LEADERBOARD, SCORE
    create = {
        "IndexName": RANKING_INDEX,
        "KeySchema": [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    dynamodb.update_table(
        TableName=table,
        AttributeDefinitions=[
            {"AttributeName": partition, "AttributeType": "S"},
            {"AttributeName": sort, "AttributeType": "N"},
        ],
        GlobalSecondaryIndexUpdates=[{"Create": create}],
    )
